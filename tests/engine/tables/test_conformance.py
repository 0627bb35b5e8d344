"""What every table promises, whoever writes it: rows, types, reads, versions."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from pathlib import Path

import pytest
from deltalake import DeltaTable

from engine.tables.table_writers import (
    FIELDS,
    PLAN,
    DeltaRsWriter,
    Writer,
    a_row,
    a_spec,
    append,
    at,
    batch,
    minutes,
    seen,
    state_of,
    upsert,
)
from tidemill.core.errors import EngineError, Incompatible
from tidemill.core.schema import Array, Decimal, Field, Object, Scalar
from tidemill.engine.tables.create import ensure_table
from tidemill.engine.tables.protocol import Between, Landed

EVERY_TYPE = (
    Field(name="window_start", type=Scalar.TIMESTAMP),
    Field(name="day", type=Scalar.DATE),
    Field(name="text", type=Scalar.STRING),
    Field(name="sketch", type=Scalar.BINARY),
    Field(name="flag", type=Scalar.BOOLEAN),
    Field(name="small", type=Scalar.INTEGER),
    Field(name="large", type=Scalar.LONG),
    Field(name="real", type=Scalar.DOUBLE),
    Field(name="short_decimal", type=Decimal(9, 2)),
    Field(name="long_decimal", type=Decimal(38, 10)),
    Field(name="sums", type=Object((Field(name="sum", type=Scalar.DOUBLE), Field(name="n", type=Scalar.LONG)))),
    Field(name="top", type=Array(Object((Field(name="item", type=Scalar.STRING), Field(name="n", type=Scalar.LONG))))),
)
FULL = {
    "window_start": datetime(2024, 3, 1, 12, 0, 0, 123_457, UTC),
    "day": date(2024, 3, 1),
    "text": "größer ✓ \x00",
    "sketch": b"\x00\xff\x01",
    "flag": True,
    "small": -(2**31),
    "large": 2**63 - 1,
    "real": 1e-300,
    "short_decimal": Number("-1234567.89"),
    "long_decimal": Number("1234567890123456789012345678.0123456789"),
    "sums": {"sum": 0.1, "n": -(2**63)},
    "top": [{"item": "a", "n": 2**62}, None, {"item": None, "n": None}],
}
EMPTY = dict.fromkeys(FULL) | {"window_start": datetime(1960, 1, 1, 0, 0, 0, 1, UTC), "top": []}
NULLS = dict.fromkeys(FULL)


def test_appended_rows_are_read_back_with_their_types(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path, fields=EVERY_TYPE))
    assert append(table, writer, [FULL, EMPTY, NULLS], 1) == Landed(1)
    found = writer.dicts(table.read())
    assert sorted(found, key=repr) == sorted([FULL, EMPTY, NULLS], key=repr)
    assert [list(row) for row in found] == [list(FULL)] * 3


def test_upserted_rows_are_read_back_with_their_types(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path, fields=EVERY_TYPE))
    within = Between(column="window_start", low=None, high=None)
    append(table, writer, [FULL | {"real": 2.0}, EMPTY], 1)
    upsert(table, writer, [FULL, NULLS], 2, keys=("window_start", "text"), within=within)
    assert sorted(writer.dicts(table.read()), key=repr) == sorted([FULL, EMPTY, NULLS], key=repr)


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_each_writer_reads_what_the_other_wrote(tmp_path: Path, writer: Writer, kind: str, spark_writer) -> None:
    other = DeltaRsWriter() if writer.name == "spark" else spark_writer
    spec = a_spec(tmp_path, fields=EVERY_TYPE)
    if kind == "append":
        append(writer.table(spec), writer, [FULL, EMPTY, NULLS], 1)
    else:
        within = Between(column="window_start", low=None, high=None)
        upsert(writer.table(spec), writer, [FULL, EMPTY, NULLS], 1, keys=("text",), within=within)
    assert sorted(other.dicts(other.table(spec).read()), key=repr) == sorted([FULL, EMPTY, NULLS], key=repr)


def test_appending_no_rows_records_the_transaction(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    assert append(table, writer, [], 4) == Landed(1)
    assert (table.transaction_version("pipeline/views"), seen(table, writer)) == (4, [])


def test_upserting_no_rows_records_the_transaction(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    append(table, writer, [a_row(0)], 1)
    assert upsert(table, writer, [], 4) == Landed(2)
    assert (table.transaction_version("pipeline/views"), seen(table, writer)) == (4, [(0, "/", 1)])


def test_upsert_replaces_rows_with_the_same_keys_and_adds_the_others(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    append(table, writer, [a_row(0, "/a"), a_row(0, "/b"), a_row(1, "/a")], 1)
    assert upsert(table, writer, [a_row(0, "/a", 5), a_row(1, "/c", 6)], 2) == Landed(2)
    assert seen(table, writer) == [(0, "/a", 5), (0, "/b", 1), (1, "/a", 1), (1, "/c", 6)]


def test_upserting_the_same_rows_twice_changes_nothing_visible(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    rows = [a_row(0, "/a", 5), a_row(1, None, None)]
    upsert(table, writer, rows, 1)
    first = seen(table, writer)
    upsert(table, writer, rows, 2)
    assert seen(table, writer) == first == [(0, "/a", 5), (1, None, None)]


def test_a_null_key_replaces_the_row_with_the_null_key(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    append(table, writer, [a_row(0, None, 1), a_row(0, "", 2)], 1)
    upsert(table, writer, [a_row(0, None, 9)], 2)
    assert seen(table, writer) == [(0, "", 2), (0, None, 9)]


def test_a_replaced_row_is_replaced_whole(tmp_path: Path, writer: Writer) -> None:
    narrow = a_spec(tmp_path)
    wide = dataclasses.replace(narrow, fields=(*FIELDS, Field(name="bytes", type=Scalar.LONG)))
    ensure_table(wide)
    append(writer.table(wide), writer, [a_row(0, "/a", bytes=7), a_row(0, "/b", bytes=8)], 1)
    upsert(writer.table(narrow), writer, [a_row(0, "/a", 2, cost=Number(3))], 2)
    found = {r["page"]: (r["views"], r["cost"], r["bytes"]) for r in writer.dicts(writer.table(wide).read())}
    assert found == {"/a": (2, Number(3), None), "/b": (1, None, 8)}


def test_stored_rows_outside_the_range_are_not_replaced(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    append(table, writer, [a_row(0, "/a", 1), a_row(5, "/a", 1)], 1)
    upsert(table, writer, [a_row(5, "/a", 9)], 2, keys=("page",), within=minutes(5, 6))
    assert seen(table, writer) == [(0, "/a", 1), (5, "/a", 9)]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([a_row(6)], id="after the range"),
        pytest.param([a_row(4), a_row(5)], id="before the range"),
        pytest.param([a_row(5) | {"window_start": None}], id="nowhere"),
        pytest.param([a_row(5, views=1), a_row(5, views=2)], id="two rows with one key"),
        pytest.param([a_row(5, None, views=1), a_row(5, None, views=2)], id="two rows with one null key"),
    ],
)
def test_rows_that_break_the_promise_of_an_upsert_are_refused(tmp_path: Path, writer: Writer, rows) -> None:
    table = writer.table(a_spec(tmp_path))
    before = state_of(table.spec)
    with pytest.raises(ValueError, match="rows to upsert"):
        upsert(table, writer, rows, 1, within=minutes(5, 6))
    assert state_of(table.spec) == before


def test_read_bounds_are_half_open_and_exact(tmp_path: Path, writer: Writer) -> None:
    microsecond = 1 / 60_000_000
    table = writer.table(a_spec(tmp_path))
    append(table, writer, [a_row(m) for m in (0, 1 - microsecond, 1, 2 - microsecond, 2)], 1)
    assert seen(table, writer, where=(minutes(1, 2),)) == [(1, "/", 1), (pytest.approx(2 - microsecond), "/", 1)]
    assert len(seen(table, writer, where=(minutes(None, 1),))) == 2
    assert len(seen(table, writer, where=(minutes(2, None),))) == 1


def test_files_are_found_by_bounds_finer_than_a_millisecond(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    moment = at(0) + timedelta(microseconds=500)
    append(table, writer, [a_row(0) | {"window_start": moment}], 1)
    tight = Between(column="window_start", low=moment, high=moment + timedelta(microseconds=1))
    assert len(writer.dicts(table.read(where=(tight,)))) == 1
    upsert(table, writer, [a_row(0, views=7) | {"window_start": moment}], 2, within=tight)
    assert [r["views"] for r in writer.dicts(table.read())] == [7]


def test_columns_come_in_the_order_asked_for(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    append(table, writer, [a_row(0)], 1)
    (row,) = writer.dicts(table.read(columns=("views", "page"), where=(minutes(0, 1),)))
    assert list(row.items()) == [("views", 1), ("page", "/")]


def test_numbers_and_dates_bound_a_read_too(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path, fields=EVERY_TYPE, partition_by=("day",)))
    rows = [FULL | {"large": n, "day": date(2024, 3, 1 + n % 3)} for n in range(6)]
    append(table, writer, [*rows, FULL | {"large": -(2**63)}, NULLS], 1)
    where = (
        Between(column="large", low=-(2**63), high=5),
        Between(column="day", low=date(2024, 3, 2), high=date(2024, 3, 3)),
    )
    assert sorted(r["large"] for r in writer.dicts(table.read(where=where))) == [1, 4]


def test_an_old_version_is_read_as_it_was(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    first = append(table, writer, [a_row(0, views=1)], 1)
    upsert(table, writer, [a_row(0, views=2)], 2)
    assert seen(table, writer, version=first.version) == [(0, "/", 1)]
    assert seen(table, writer, version=0) == []
    assert table.version() == 2


def test_a_version_that_never_was_is_refused(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    with pytest.raises(EngineError, match="at version 7"):
        table.read(version=7)


def test_a_read_is_pinned_when_it_is_made(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    append(table, writer, [a_row(0)], 1)
    rows = table.read()
    append(table, writer, [a_row(1)], 2)
    assert len(writer.dicts(rows)) == 1


def test_reading_touches_only_files_that_can_hold_rows(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    for number in range(6):
        append(table, writer, [a_row(number, "/a"), a_row(number, "/b")], number)
    _spoil_all_but(table.spec.uri, newest=2)
    assert seen(table, writer, where=(minutes(4, None),)) == [(m, p, 1) for m in (4, 5) for p in ("/a", "/b")]
    with pytest.raises(Exception, match=r"(?i)parquet|corrupt|magic|footer"):
        seen(table, writer, where=(minutes(3, None),))


def test_upserting_touches_only_files_that_can_hold_rows(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    for number in range(6):
        append(table, writer, [a_row(number, "/a"), a_row(number, "/b")], number)
    spoiled = _spoil_all_but(table.spec.uri, newest=2)
    upsert(table, writer, [a_row(5, "/b", 9)], 7, within=minutes(4, 6))
    assert seen(table, writer, where=(minutes(4, None),)) == [(4, "/a", 1), (4, "/b", 1), (5, "/a", 1), (5, "/b", 9)]
    assert spoiled <= state_of(table.spec)[3]


def _spoil_all_but(uri: str, newest: int) -> frozenset[str]:
    """Makes files unreadable, all but those of the newest commits; what they hold is never asked for."""
    kept = frozenset(DeltaTable(uri).file_uris()) - frozenset(
        DeltaTable(uri, version=DeltaTable(uri).version() - newest).file_uris()
    )
    spoiled = frozenset(DeltaTable(uri).file_uris()) - kept
    assert spoiled
    for file in spoiled:
        path = Path(file.removeprefix("file://"))
        path.write_bytes(b"x" * path.stat().st_size)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return spoiled


def test_a_column_that_is_added_is_null_in_old_rows_and_old_versions(tmp_path: Path, writer: Writer) -> None:
    old = a_spec(tmp_path)
    append(writer.table(old), writer, [a_row(0)], 1)
    new = dataclasses.replace(old, fields=(*FIELDS, Field(name="bytes", type=Scalar.LONG)))
    ensure_table(new)
    table = writer.table(new)
    append(table, writer, [a_row(1, bytes=5)], 2)
    upsert(table, writer, [a_row(2, bytes=6)], 3)
    by_minute = {r["window_start"]: r["bytes"] for r in writer.dicts(table.read())}
    assert by_minute == {at(0): None, at(1): 5, at(2): 6}
    assert [r["bytes"] for r in writer.dicts(table.read(version=1))] == [None]
    assert writer.dicts(table.read(version=1, where=(Between(column="bytes", low=0, high=None),))) == []


def test_a_writer_that_does_not_know_a_column_leaves_it_null(tmp_path: Path, writer: Writer) -> None:
    old = a_spec(tmp_path)
    new = dataclasses.replace(old, fields=(*FIELDS, Field(name="bytes", type=Scalar.LONG)))
    ensure_table(new)
    append(writer.table(old), writer, [a_row(0)], 1)
    upsert(writer.table(old), writer, [a_row(1)], 2)
    assert [r["bytes"] for r in writer.dicts(writer.table(new).read())] == [None, None]
    assert len(writer.dicts(writer.table(old).read())) == 2


def test_rows_of_another_type_are_refused_by_name(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    wrong = writer.rows([{"views": "12"}], (Field(name="views", type=Scalar.STRING),))
    with pytest.raises(Incompatible, match=r"table views .* column 'views' must be bigint, the rows have string"):
        table.append(wrong, transaction=batch(1), plan_hash=PLAN)
    assert state_of(table.spec)[1] is None


def test_partitioned_tables_keep_every_value_of_the_partition(tmp_path: Path, writer: Writer) -> None:
    fields = (*FIELDS, Field(name="site", type=Scalar.STRING), Field(name="day", type=Scalar.DATE))
    table = writer.table(a_spec(tmp_path, fields=fields, partition_by=("site", "day")))
    sites = ["a b/c%ü=1", None, "x"]
    rows = [a_row(m, site=s, day=at(m).date()) for s in sites for m in (0, 1440)]
    append(table, writer, [r for r in rows if r["site"] != "x"], 1)
    upsert(table, writer, [r | {"views": 5} for r in rows if r["site"]], 2, keys=("window_start", "page", "site"))
    found = {(r["site"], r["day"]): r["views"] for r in writer.dicts(table.read())}
    assert found == {(r["site"], r["day"]): 5 if r["site"] else 1 for r in rows}


def test_the_protocol_of_the_table_stays_what_every_reader_knows(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    append(table, writer, [a_row(0)], 1)
    append(table, writer, [a_row(0)], None)
    upsert(table, writer, [a_row(0, views=2)], 2, keys=("window_start", "page", "views"))
    assert state_of(table.spec)[2] == (1, 2)


def test_a_table_that_is_not_there_has_no_version(tmp_path: Path, writer: Writer) -> None:
    spec = dataclasses.replace(a_spec(tmp_path), uri=str(tmp_path / "nothing"))
    table = writer.table(spec)
    assert (table.version(), table.transaction_version("pipeline/views")) == (None, None)
    with pytest.raises(EngineError, match=r"table views is not at .*nothing"):
        table.read()
