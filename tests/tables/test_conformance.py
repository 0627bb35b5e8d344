"""What every table promises to its writers: rows, types, keys, columns."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pytest

from tables.table_writers import (
    FIELDS,
    MIDNIGHT,
    PLAN,
    DeltaRsWriter,
    Row,
    Writer,
    a_row,
    a_spec,
    append,
    at,
    batch,
    load,
    minutes,
    seen,
    spoil_all_but,
    state_of,
    upsert,
)
from tidemill.core.contract.schema import Array, Decimal, Field, Object, Scalar
from tidemill.core.errors import Incompatible, KeysCollide
from tidemill.tables.create import ensure_table
from tidemill.tables.interface import Between, Landed

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


def test_appended_rows_are_read_back_with_their_types_by_every_reader(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path, fields=EVERY_TYPE))
    assert append(table, writer, [FULL, EMPTY, NULLS], 1) == Landed(1)
    _holds(table, writer, [FULL, EMPTY, NULLS])
    assert state_of(table.spec)[2] == (1, 2)


def test_upserted_rows_are_read_back_with_their_types_by_every_reader(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path, fields=EVERY_TYPE))
    within = Between(column="window_start", low=None, high=None)
    load(table.spec, [FULL | {"real": 2.0}, EMPTY], 1)
    assert upsert(table, writer, [FULL, NULLS], 2, keys=("window_start", "text"), within=within) == Landed(2)
    _holds(table, writer, [FULL, EMPTY, NULLS])
    assert state_of(table.spec)[2] == (1, 2)


def _holds(table: Any, writer: Writer, rows: list[Row]) -> None:
    plain = DeltaRsWriter()
    for reader, found in ((writer, table), (plain, plain.table(table.spec))):
        dicts = reader.dicts(found.read())
        assert sorted(dicts, key=repr) == sorted(rows, key=repr)
        assert [list(row) for row in dicts] == [list(FULL)] * len(rows)


def test_writing_no_rows_records_the_transaction(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    assert append(table, writer, [], 4) == Landed(1)
    assert table.transaction_version("pipeline/views") == 4
    assert upsert(table, writer, [], 5) == Landed(2)
    assert table.transaction_version("pipeline/views") == 5
    assert seen(table, writer) == []


def test_upsert_replaces_rows_with_the_same_keys_and_adds_the_others(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(0, "/a"), a_row(0, "/b"), a_row(1, "/a")], 1)
    load(table.spec, [a_row(0, None), a_row(0, "")], 2)
    rows = [a_row(0, "/a", 5), a_row(1, "/c", 6), a_row(0, None, 7), a_row(1, None, None)]
    expected = [(0, "", 1), (0, "/a", 5), (0, "/b", 1), (0, None, 7), (1, "/a", 1), (1, "/c", 6), (1, None, None)]
    upsert(table, writer, rows, 3)
    assert seen(table, writer) == expected
    upsert(table, writer, rows, 4)
    assert seen(table, writer) == expected


def test_stored_rows_outside_the_range_are_not_replaced(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    moment = MIDNIGHT + timedelta(microseconds=1_500)
    around = [moment + timedelta(microseconds=m) for m in (-1, 0, 1)]
    append(table, writer, [a_row(0, "/a") | {"window_start": w} for w in around], 1)
    tight = Between(column="window_start", low=moment, high=moment + timedelta(microseconds=1))
    upsert(table, writer, [a_row(0, "/a", 9) | {"window_start": moment}], 2, keys=("page",), within=tight)
    found = sorted((r["window_start"], r["views"]) for r in writer.dicts(table.read()))
    assert found == list(zip(around, (1, 9, 1), strict=True))


NOT_IN_RANGE = [a_row(6)]
TWICE = [a_row(5, None, views=1), a_row(5, None, views=2)]


@pytest.mark.parametrize("rows", [NOT_IN_RANGE, TWICE], ids=["outside the range", "two rows with one key"])
def test_rows_that_break_the_promise_of_an_upsert_are_refused(tmp_path: Path, writer: Writer, rows: list[Row]) -> None:
    table = writer.table(a_spec(tmp_path))
    before = state_of(table.spec)
    with pytest.raises(ValueError, match="rows to upsert") as refused:
        upsert(table, writer, rows, 1, within=minutes(5, 6))
    if rows is TWICE:
        assert isinstance(refused.value, KeysCollide)
        assert "rebuild" in refused.value.fix
    assert state_of(table.spec) == before


@pytest.mark.parametrize("start", [at(4), at(4.9999), None], ids=str)
def test_rows_before_the_range_or_without_a_time_are_refused(tmp_path: Path, start: datetime | None) -> None:
    table = DeltaRsWriter().table(a_spec(tmp_path))
    with pytest.raises(ValueError, match="1 rows to upsert lie outside"):
        upsert(table, DeltaRsWriter(), [a_row(5), a_row(5) | {"window_start": start}], 1, within=minutes(5, 6))


def test_upserting_touches_only_files_that_can_hold_rows(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    for number in range(6):
        load(table.spec, [a_row(number, "/a"), a_row(number, "/b")], number)
    spoiled = spoil_all_but(table.spec.uri, newest=2)
    upsert(table, writer, [a_row(5, "/b", 9)], 7, within=minutes(4, 6))
    assert seen(table, writer, where=(minutes(4, None),)) == [(4, "/a", 1), (4, "/b", 1), (5, "/a", 1), (5, "/b", 9)]
    assert spoiled <= state_of(table.spec)[3]


def test_a_writer_that_does_not_know_a_column_leaves_it_null(tmp_path: Path, writer: Writer) -> None:
    narrow = a_spec(tmp_path)
    wide = dataclasses.replace(narrow, fields=(*FIELDS, Field(name="bytes", type=Scalar.LONG)))
    ensure_table(wide)
    load(wide, [a_row(0, "/a", bytes=7), a_row(0, "/b", bytes=8)], 1)
    append(writer.table(narrow), writer, [a_row(1, "/c")], 2)
    upsert(writer.table(narrow), writer, [a_row(0, "/a", 2), a_row(2, "/d")], 3)
    found = {r["page"]: (r["views"], r["bytes"]) for r in writer.dicts(writer.table(wide).read())}
    assert found == {"/a": (2, None), "/b": (1, 8), "/c": (1, None), "/d": (1, None)}


def test_a_column_that_is_added_is_null_in_old_rows_and_old_versions(tmp_path: Path, writer: Writer) -> None:
    old = a_spec(tmp_path)
    load(old, [a_row(0)], 1)
    new = dataclasses.replace(old, fields=(*FIELDS, Field(name="bytes", type=Scalar.LONG)))
    ensure_table(new)
    table = writer.table(new)
    append(table, writer, [a_row(1, bytes=5)], 2)
    upsert(table, writer, [a_row(2, bytes=6)], 3)
    by_minute = {r["window_start"]: r["bytes"] for r in writer.dicts(table.read())}
    assert by_minute == {at(0): None, at(1): 5, at(2): 6}
    assert [r["bytes"] for r in writer.dicts(table.read(version=1))] == [None]
    assert writer.dicts(table.read(version=1, where=(Between(column="bytes", low=0, high=None),))) == []


def test_partitioned_tables_keep_every_value_of_the_partition(tmp_path: Path, writer: Writer) -> None:
    fields = (*FIELDS, Field(name="site", type=Scalar.STRING), Field(name="day", type=Scalar.DATE))
    table = writer.table(a_spec(tmp_path, fields=fields, partition_by=("site", "day")))
    sites = ["a b/c%ü=1", None, "x"]
    rows = [a_row(m, site=s, day=at(m).date()) for s in sites for m in (0, 1440)]
    append(table, writer, [r for r in rows if r["site"] != "x"], 1)
    upsert(table, writer, [r | {"views": 5} for r in rows if r["site"]], 2, keys=("window_start", "page", "site"))
    found = {(r["site"], r["day"]): r["views"] for r in writer.dicts(table.read())}
    assert found == {(r["site"], r["day"]): 5 if r["site"] else 1 for r in rows}


def test_rows_of_another_type_are_refused_by_name(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    wrong = writer.rows([{"views": "12"}], (Field(name="views", type=Scalar.STRING),))
    with pytest.raises(Incompatible, match=r"table views .* column 'views' must be bigint, the rows have string"):
        table.append(wrong, transaction=batch(1), plan_hash=PLAN)
    assert state_of(table.spec)[1] is None
