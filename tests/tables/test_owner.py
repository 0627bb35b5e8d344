"""A table knows its owner, whoever writes it and whatever is done to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from tables.table_writers import PLAN, DeltaRsWriter, Writer, a_row, a_spec, append, batch, load, minutes, upsert
from tidemill.core.errors import ForeignTable, TidemillError
from tidemill.tables.create import ensure_table
from tidemill.tables.handles import newest, open_table
from tidemill.tables.interface import Between, TableSpec
from tidemill.tables.keeping import KeptTable
from tidemill.tables.owner import OWNER, hand_over, owner_of


def owned(folder: Path, owner: str = "sales") -> TableSpec:
    return a_spec(folder, owner=owner)


def test_every_write_of_either_writer_keeps_it(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(owned(tmp_path))
    rows = [writer.rows([a_row(number)], table.spec.fields) for number in range(5)]
    append(table, writer, [a_row(1)], 1)
    upsert(table, writer, [a_row(1)], 2)
    table.replace(rows[2], within=(minutes(0, 5),), transaction=batch(3), plan_hash=PLAN)
    table.overwrite(rows[3], transaction=batch(4), plan_hash=PLAN)
    append(table, writer, [a_row(4)], 5)
    kept = KeptTable(table.spec)
    kept.compact(Between(column="window_start", low=None, high=None))
    kept.go_back(2, transaction=batch(6), plan_hash=PLAN)
    assert DeltaTable(table.spec.uri).metadata().configuration[OWNER] == "sales"


def test_nobody_else_opens_it_to_write_or_to_read(tmp_path: Path, writer: Writer) -> None:
    mine = owned(tmp_path)
    load(mine, [a_row(1)], 1)
    other = replace(mine, owner="other")
    for attempt in (
        lambda: ensure_table(other),
        lambda: newest(other),
        lambda: append(writer.table(other), writer, [a_row(2)], 2),
        lambda: writer.table(other).version(),
        lambda: KeptTable(other).go_back(0, transaction=batch(2), plan_hash=PLAN),
    ):
        with pytest.raises(ForeignTable, match=r"table views \(.*\) belongs to pipeline sales, and not to other"):
            attempt()
    assert newest(replace(mine, owner="")) is not None
    assert open_table(mine).version() == 1


def test_a_table_of_before_belongs_to_who_has_written_it(tmp_path: Path) -> None:
    spec = a_spec(tmp_path)
    load(spec, [a_row(1)], 1)
    handle = DeltaTable(spec.uri)
    assert owner_of(handle, "other") == "pipeline"
    with pytest.raises(ForeignTable, match="belongs to pipeline pipeline, and not to other"):
        ensure_table(replace(spec, owner="other"))
    ensure_table(replace(spec, owner="pipeline"))
    assert DeltaTable(spec.uri).metadata().configuration[OWNER] == "pipeline"
    assert ensure_table(replace(spec, owner="pipeline")).version() == 2, "it is written down once"


def test_a_table_of_before_that_two_have_written_belongs_to_neither(tmp_path: Path) -> None:
    spec = a_spec(tmp_path)
    for app in ("sales/views", "other/views"):
        rows = DeltaRsWriter().rows([a_row(1)])
        DeltaRsWriter().table(spec).append(rows, transaction=batch(1, app), plan_hash=PLAN)
    for mine, theirs in (("sales", "other"), ("other", "sales")):
        with pytest.raises(ForeignTable, match=f"belongs to pipeline {theirs}, and not to {mine}"):
            ensure_table(replace(spec, owner=mine))


def test_a_table_that_nobody_has_written_belongs_to_who_comes_first(tmp_path: Path) -> None:
    spec = a_spec(tmp_path)
    ensure_table(replace(spec, owner="sales"))
    with pytest.raises(ForeignTable):
        ensure_table(replace(spec, owner="other"))


def test_a_write_that_began_before_the_table_changed_hands_fails(tmp_path: Path) -> None:
    mine = owned(tmp_path)
    table = DeltaRsWriter().table(mine)
    other = replace(mine, owner="other")
    table.before = lambda: hand_over(DeltaTable(mine.uri), other, {})
    with pytest.raises(TidemillError):
        append(table, DeltaRsWriter(), [a_row(1)], 1)
    assert DeltaTable(mine.uri).file_uris() == []
    late = DeltaTable(mine.uri)
    load(other, [a_row(2)], 1)
    with pytest.raises(CommitFailedError):
        hand_over(late, mine, {})
