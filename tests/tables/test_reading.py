"""What every table promises to a reader."""

from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tables.table_writers import (
    FIELDS,
    MIDNIGHT,
    DeltaRsWriter,
    SparkWriter,
    Writer,
    a_row,
    a_spec,
    load,
    minutes,
    seen,
    spoil_all_but,
    upsert,
)
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.errors import EngineError
from tidemill.tables.create import ensure_table
from tidemill.tables.handles import open_table
from tidemill.tables.interface import Between, TableSpec
from tidemill.tables.skipping import is_plain


class OfFiles(SparkWriter):
    """Spark, of a table that is open already."""

    name = "spark, of files"

    def table(self, spec: TableSpec) -> Any:
        from tidemill.tables.spark import SparkTable

        class Known(SparkTable):
            def read(self, **how: Any) -> Any:
                self._opened = None if "version" in how else open_table(self.spec)
                return super().read(**how)

        return Known(spec, self.session)


BY_SPARK = [pytest.mark.spark, pytest.mark.long]
"""Most of what Spark's reader is asked for is long; what it must not get wrong is asked of `everybody` in any run."""
everybody = pytest.mark.parametrize(
    "writer",
    ["delta-rs", pytest.param("spark", marks=pytest.mark.spark), pytest.param("files", marks=pytest.mark.spark)],
    indirect=True,
)


@pytest.fixture(
    params=["delta-rs", pytest.param("spark", marks=BY_SPARK), pytest.param("files", marks=pytest.mark.spark)]
)
def writer(request: pytest.FixtureRequest) -> Writer:
    """Everybody who reads."""
    if request.param == "delta-rs":
        return DeltaRsWriter()
    session = request.getfixturevalue("spark")
    return SparkWriter(session) if request.param == "spark" else OfFiles(session)


@everybody
def test_read_bounds_are_half_open_and_exact(tmp_path: Path, writer: Writer) -> None:
    microsecond = 1 / 60_000_000
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(m) for m in (0, 1 - microsecond, 1, 2 - microsecond, 2)], 1)
    assert seen(table, writer, where=(minutes(1, 2),)) == [(1, "/", 1), (pytest.approx(2 - microsecond), "/", 1)]
    assert len(seen(table, writer, where=(minutes(None, 1),))) == 2
    assert len(seen(table, writer, where=(minutes(2, None),))) == 1


def test_a_row_that_meets_all_conditions_of_any_part_is_read_once(tmp_path: Path, writer: Writer) -> None:
    microsecond = 1 / 60_000_000
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(m, views=v) for m, v in ((0, 1), (1 - microsecond, 1), (1, 1), (1, 7), (5, 1), (6, 7))], 1)
    few = Between(column="views", low=0, high=5)
    parts = ((minutes(1, 6), few), (minutes(0, 2), few), (minutes(6, 7),))
    expected = [(1 - microsecond, 1), (1, 1), (5, 1), (6, 7)]
    found = [(m, views) for m, _, views in seen(table, writer, any_of=parts, where=(minutes(0.5, None),))]
    assert found == [(pytest.approx(m), views) for m, views in expected]
    assert len(writer.dicts(table.read(any_of=((few,), (minutes(None, None),))))) == 6


def test_parts_of_several_partitions_are_read_once_too(tmp_path: Path, writer: Writer) -> None:
    fields = (*FIELDS, Field(name="level", type=Scalar.INTEGER))
    table = writer.table(a_spec(tmp_path, fields=fields, partition_by=("level",)))
    rows = [a_row(m, views=10 * level + m) | {"level": level} for level in (1, 2, 3) for m in range(4)]
    load(table.spec, rows, 1)
    one, two, low = (Between(column="level", low=a, high=b) for a, b in ((1, 2), (2, 3), (0, 3)))
    for parts, expected in (
        (((one, minutes(0, 1)), (two, minutes(2, 4)), (one, minutes(3, 4))), [10, 13, 22, 23]),
        (((one, minutes(0, 1)), (minutes(0, 2),)), [10, 11, 20, 21, 30, 31]),
        (((one, minutes(0, 1)), (low, minutes(0, 1)), (two,)), [10, 20, 21, 22, 23]),
        (((one,),), [10, 11, 12, 13]),
    ):
        assert sorted(row["views"] for row in writer.dicts(table.read(any_of=parts))) == expected


def test_columns_come_in_the_order_asked_for(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(0)], 1)
    (row,) = writer.dicts(table.read(columns=("views", "page"), where=(minutes(0, 1),)))
    assert list(row.items()) == [("views", 1), ("page", "/")]


def test_numbers_and_dates_bound_a_read_too(tmp_path: Path, writer: Writer) -> None:
    fields = (*FIELDS, Field(name="day", type=Scalar.DATE))
    table = writer.table(a_spec(tmp_path, fields=fields, partition_by=("day",)))
    days = [date(2024, 3, 1 + n % 3) for n in range(6)]
    load(table.spec, [a_row(0, views=n, day=day) for n, day in enumerate(days)], 1)
    load(table.spec, [a_row(0, views=-(2**63), day=days[1]), a_row(0, views=None), a_row(0, views=2**63 - 1)], 2)
    second_day = Between(column="day", low=days[1], high=days[2])
    found = table.read(where=(Between(column="views", low=-(2**63), high=4), second_day))
    assert sorted(r["views"] for r in writer.dicts(found)) == [-(2**63), 1]
    found = table.read(where=(Between(column="views", low=5, high=2**63 - 1),))
    assert [r["views"] for r in writer.dicts(found)] == [5]


@everybody
def test_an_old_version_is_read_as_it_was(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(0, views=1)], 1)
    upsert(DeltaRsWriter().table(table.spec), DeltaRsWriter(), [a_row(0, views=2)], 2)
    assert seen(table, writer, version=1) == [(0, "/", 1)]
    assert seen(table, writer, version=0) == []
    assert table.version() == 2


def test_a_version_that_never_was_is_refused(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    with pytest.raises(EngineError, match="at version 7"):
        table.read(version=7)


def test_a_read_is_pinned_when_it_is_made(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(0)], 1)
    rows = table.read()
    load(table.spec, [a_row(1)], 2)
    assert len(writer.dicts(rows)) == 1


def test_reading_touches_only_files_that_can_hold_rows(tmp_path: Path, writer: Writer) -> None:
    table = writer.table(a_spec(tmp_path))
    for number in range(6):
        load(table.spec, [a_row(number, "/a"), a_row(number, "/b")], number)
    spoil_all_but(table.spec.uri, newest=2)
    assert seen(table, writer, where=(minutes(4, None),)) == [(m, p, 1) for m in (4, 5) for p in ("/a", "/b")]
    with pytest.raises(Exception, match=r"(?i)parquet|corrupt|magic|footer"):
        seen(table, writer, where=(minutes(3, None),))


def test_a_table_that_is_not_there_has_no_version(tmp_path: Path, writer: Writer) -> None:
    spec = dataclasses.replace(a_spec(tmp_path), uri=str(tmp_path / "nothing"))
    table = writer.table(spec)
    assert (table.version(), table.transaction_version("pipeline/views")) == (None, None)
    with pytest.raises(EngineError, match=r"table views is not at .*nothing"):
        table.read()


@pytest.mark.spark
def test_spark_reads_a_table_of_ours_although_something_landed_after_it_was_opened(
    tmp_path: Path, spark_writer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = spark_writer.table(a_spec(tmp_path, own=True))
    load(table.spec, [a_row(0)])

    def opened(*arguments: Any) -> Any:
        handle = open_table(*arguments)
        load(table.spec, [a_row(1)])
        return handle

    monkeypatch.setattr("tidemill.tables.spark.open_table", opened)
    assert (0, "/", 1) in seen(table, spark_writer)


@pytest.mark.parametrize("folder", ["a {c,d} *e", "100 % of ü", "a=1/b c"])
def test_a_table_lies_in_a_folder_of_any_name(tmp_path: Path, writer: Writer, folder: str) -> None:
    fields = (*FIELDS, Field(name="level", type=Scalar.INTEGER))
    table = writer.table(a_spec(tmp_path / folder, fields=fields, partition_by=("level",)))
    load(table.spec, [a_row(m) | {"level": m % 2} for m in range(4)], 1)
    load(table.spec, [a_row(9) | {"level": None}], 2)
    odd = Between(column="level", low=1, high=2)
    assert [m for m, *_ in seen(table, writer, any_of=((odd,), (minutes(8, None),)))] == [1, 3, 9]
    assert [m for m, *_ in seen(table, writer)] == [0, 1, 2, 3, 9]


def test_files_that_lie_in_no_folder_of_their_partition_are_read_too(tmp_path: Path, writer: Writer) -> None:
    fields = (*FIELDS, Field(name="day", type=Scalar.DATE), Field(name="area", type=Scalar.STRING))
    table = writer.table(a_spec(tmp_path, fields=fields, partition_by=("day", "area")))
    days = [date(2024, 3, 1), date(2024, 3, 2), None]
    rows = [a_row(m) | {"day": days[m % 3], "area": area} for m in range(6) for area in ("a b", "x=1/ü%", None)]
    for number, row in enumerate(rows):
        load(table.spec, [row], number)
    assert DeltaRsWriter().table(table.spec).compact(minutes(0, 4)).files > 0
    assert any("/" not in path for path in open_table(table.spec).get_add_actions().column("path").to_pylist())
    load(table.spec, [a_row(9) | {"day": days[0], "area": "a b"}], 90)
    second = Between(column="day", low=days[1], high=date(2024, 3, 3))

    def found(**how: Any) -> list[tuple[Any, ...]]:
        moments = [(r["window_start"], r["day"], r["area"] or "") for r in writer.dicts(table.read(**how))]
        return sorted((int((at - MIDNIGHT).total_seconds() // 60), str(day), area) for at, day, area in moments)

    wanted = sorted([(m % 60, str(days[m % 3]), a) for m in range(6) for a in ("a b", "x=1/ü%", "")])
    assert found() == sorted([*wanted, (9, str(days[0]), "a b")])
    assert found(any_of=((second, minutes(0, 2)), (second, minutes(4, 6)))) == [w for w in wanted if w[0] in (1, 4)]


@pytest.mark.spark
@everybody
def test_columns_that_older_files_lack_are_null(tmp_path: Path, writer: Writer) -> None:
    spec = a_spec(tmp_path)
    load(writer.table(spec).spec, [a_row(0)], 1)
    wider = a_spec(tmp_path, fields=(*FIELDS, Field(name="more", type=Scalar.LONG)))
    ensure_table(wider)
    load(wider, [a_row(1) | {"more": 7}], 2)
    assert [row["more"] for row in writer.dicts(writer.table(wider).read())] in ([None, 7], [7, None])


@pytest.mark.spark
def test_files_alone_do_not_tell_of_a_table_with_features(tmp_path: Path, spark: Any) -> None:
    spec = a_spec(tmp_path)
    load(DeltaRsWriter().table(spec).spec, [a_row(0), a_row(1)], 1)
    assert is_plain(open_table(spec))
    spark.sql(f"ALTER TABLE delta.`{spec.uri}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    assert not is_plain(open_table(spec))
    spark.sql(f"DELETE FROM delta.`{spec.uri}` WHERE window_start > TIMESTAMP'2024-03-01T00:00:30Z'")
    assert [m for m, *_ in seen(OfFiles(spark).table(spec), OfFiles(spark))] == [0]
