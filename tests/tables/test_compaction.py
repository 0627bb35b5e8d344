"""Small files are folded while writers go on, and no row is lost, doubled or changed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tables.table_writers import (
    FIELDS,
    DeltaRsWriter,
    HookedDeltaRs,
    a_row,
    a_spec,
    append,
    at,
    batch,
    load,
    minutes,
    seen,
    state_of,
    upsert,
)
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.errors import Incompatible
from tidemill.tables.compact import Folded
from tidemill.tables.interface import Between, TableSpec

WRITER = DeltaRsWriter()
ALWAYS = Between(column="window_start", low=None, high=None)


def a_table(folder: Path, commits: int = 6, **changes: object) -> HookedDeltaRs:
    """A table of one small file per minute."""
    table = WRITER.table(a_spec(folder, **changes))
    for minute in range(commits):
        load(table.spec, [a_row(minute, "/a"), a_row(minute, "/b")], minute)
    return table


def files(spec: TableSpec, **extra: str) -> list[tuple[float, ...]]:
    """First and last minute, and number of rows, of each file."""
    listing = pa.table(DeltaTable(spec.uri).get_add_actions(flatten=True)).to_pylist()
    start = at(0)
    return sorted(
        (
            (f["min.window_start"] - start).total_seconds() / 60,
            (f["max.window_start"] - start).total_seconds() / 60,
            f["num_records"],
        )
        for f in listing
    )


def test_folding_keeps_every_row_and_every_transaction(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    before = seen(table, WRITER)
    assert table.compact(ALWAYS) == Folded(files=6, into=1)
    assert files(table.spec) == [(0, 5, 12)]
    assert seen(table, WRITER) == before
    assert state_of(table.spec)[1:3] == (5, (1, 2))


def test_a_second_folding_finds_nothing_to_do(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.compact(ALWAYS)
    before = state_of(table.spec)
    assert table.compact(ALWAYS) == Folded()
    assert state_of(table.spec) == before


def test_old_versions_stay_readable(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.compact(ALWAYS)
    assert len(seen(table, WRITER, version=3)) == 6


def test_only_files_wholly_inside_the_range_are_folded(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    load(table.spec, [a_row(3, "/late"), a_row(5, "/late")])
    assert table.compact(minutes(None, 4)) == Folded(files=4, into=1)
    assert files(table.spec) == [(0, 3, 8), (3, 5, 2), (4, 4, 2), (5, 5, 2)]


def test_files_are_folded_up_to_the_target_size_and_larger_ones_left_alone(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    small = max(Path(f.removeprefix("file://")).stat().st_size for f in state_of(table.spec)[3])
    load(table.spec, [a_row(9, f"/{n}", n * 10**15) for n in range(5_000)])
    assert table.compact(ALWAYS, target_size=2 * small + 10) == Folded(files=6, into=3)
    assert files(table.spec) == [(0, 1, 4), (2, 3, 4), (4, 5, 4), (9, 9, 5_000)]


def test_partitions_are_folded_apart(tmp_path: Path) -> None:
    fields = (*FIELDS, Field(name="site", type=Scalar.STRING))
    table = WRITER.table(a_spec(tmp_path, fields=fields, partition_by=("site",)))
    rows = [a_row(m, site=site) for m in range(3) for site in ("a b/c%", None)]
    for row in rows:
        load(table.spec, [row])
    assert table.compact(ALWAYS) == Folded(files=6, into=2)
    assert sorted(WRITER.dicts(table.read()), key=repr) == sorted((r | {"cost": None} for r in rows), key=repr)


def test_a_range_of_the_partition_selects_files_too(tmp_path: Path) -> None:
    fields = (*FIELDS, Field(name="day", type=Scalar.DATE))
    table = WRITER.table(a_spec(tmp_path, fields=fields, partition_by=("day",)))
    for minute in (0, 1, 1440, 1441):
        load(table.spec, [a_row(minute, day=at(minute).date())])
    within = Between(column="day", low=None, high=at(1440).date())
    assert table.compact(within) == Folded(files=2, into=1)
    assert files(table.spec) == [(0, 1, 2), (1440, 1440, 1), (1441, 1441, 1)]


def test_an_append_meanwhile_stays_and_files_are_folded(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.before = lambda: load(table.spec, [a_row(9, "/new")], 9)
    assert table.compact(ALWAYS) == Folded(files=6, into=1)
    assert (9, "/new", 1) in seen(table, WRITER)
    assert len(seen(table, WRITER)) == 13
    assert state_of(table.spec)[1] == 9


def test_an_upsert_meanwhile_wins_and_nothing_is_folded(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    rival = WRITER.table(table.spec)
    table.before = lambda: upsert(rival, WRITER, [a_row(2, "/a", 9)], 7)
    assert table.compact(ALWAYS) == Folded()
    assert len(seen(table, WRITER)) == 12
    assert (2, "/a", 9) in seen(table, WRITER)


def test_a_folding_meanwhile_makes_an_upsert_look_again(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    rival = WRITER.table(table.spec)
    table.before = lambda: rival.compact(ALWAYS)
    upsert(table, WRITER, [a_row(2, "/a", 9)], 7)
    assert len(seen(table, WRITER)) == 12
    assert (2, "/a", 9) in seen(table, WRITER)


def test_two_foldings_at_once_do_not_double_rows(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    rival = WRITER.table(table.spec)
    table.before = lambda: rival.compact(ALWAYS)
    assert table.compact(ALWAYS) == Folded()
    assert files(table.spec) == [(0, 5, 12)]


def test_a_folded_file_gives_up_only_the_rows_that_are_replaced(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.compact(ALWAYS)
    upsert(table, WRITER, [a_row(2, "/a", 9), a_row(6, "/a", 9)], 7, within=minutes(2, 7))
    assert files(table.spec) == [(0, 5, 11), (2, 6, 2)]


def test_appends_go_on_after_a_folding(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.compact(ALWAYS)
    append(table, WRITER, [a_row(9)], 9)
    assert table.compact(ALWAYS) == Folded(), "what is folded already outweighs the new file"
    append(table, WRITER, [a_row(10)], 10)
    assert table.compact(ALWAYS) == Folded(files=3, into=1)
    assert len(seen(table, WRITER, where=(minutes(5, 11),))) == 4


def test_a_row_is_written_anew_a_few_times_however_often_files_are_folded(tmp_path: Path) -> None:
    table, rows = a_table(tmp_path, commits=0), 500
    there, rewritten, rounds = set(), 0, 12
    for minute in range(4 * rounds):
        append(table, WRITER, [a_row(minute, f"/{minute}/{n}") for n in range(rows)], minute)
        if minute % 4 == 3:
            table.compact(ALWAYS)
            listing = pa.table(DeltaTable(table.spec.uri).get_add_actions(flatten=True)).to_pylist()
            rewritten += sum(f["num_records"] for f in listing if f["path"] not in there)
            there = {f["path"] for f in listing}
    assert rewritten <= 4 * rounds * rows * 4
    assert len(there) <= 5
    assert len(seen(table, WRITER)) == 4 * rounds * rows


def test_an_empty_table_has_nothing_to_fold(tmp_path: Path) -> None:
    assert a_table(tmp_path, commits=0).compact(ALWAYS) == Folded()


def test_a_table_with_a_newer_protocol_is_not_rewritten(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    DeltaTable(table.spec.uri).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    for rewrite in (lambda: table.compact(ALWAYS), lambda: upsert(table, WRITER, [a_row(0)], 9)):
        with pytest.raises(Incompatible, match=r"expected protocol \(1, 2\), found \(1, 4\)"):
            rewrite()
    assert table.transaction_version(batch(0).app_id) == 5
