"""A log is cut at its old end, and nothing that still counts is lost."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tables.table_writers import DeltaRsWriter, SparkWriter, a_row, a_spec, append, load, seen
from tidemill.core.errors import EngineError
from tidemill.tables.interface import AlreadyThere, TableSpec
from tidemill.tables.trim import RETENTION, trim_log, trim_unreadable

WRITER = DeltaRsWriter()


def a_long_log(folder: Path, commits: int = 35) -> TableSpec:
    spec = a_spec(folder)
    for number in range(commits):
        load(spec, [a_row(number)], number)
    return spec


def entries(spec: TableSpec) -> list[str]:
    return sorted(p.name for p in Path(spec.uri, "_delta_log").iterdir())


def test_trimming_keeps_rows_transactions_and_the_newest_versions(tmp_path: Path) -> None:
    spec = a_long_log(tmp_path)
    before = len(entries(spec))
    gone = trim_log(spec, keep=10)
    assert (gone, len(entries(spec))) == (before - len(entries(spec)), before - gone)
    assert gone > 15
    table = WRITER.table(spec)
    assert [row[0] for row in seen(table, WRITER)] == list(range(35))
    for version in range(25, 36):
        assert len(seen(table, WRITER, version=version)) == version
    assert append(table, WRITER, [], 34) == AlreadyThere(35)
    assert DeltaTable(spec.uri).history()[-1]["version"] == 19
    with pytest.raises(EngineError, match="at version 18"):
        seen(table, WRITER, version=18)


def test_what_is_left_begins_with_a_checkpoint_and_has_no_hole(tmp_path: Path) -> None:
    spec = a_long_log(tmp_path)
    trim_log(spec, keep=10)
    versions = [int(name[:20]) for name in entries(spec) if name.endswith(".json")]
    assert versions == list(range(versions[0], 36))
    assert f"{versions[0]:020}.checkpoint.parquet" in entries(spec)


def test_a_log_without_an_old_checkpoint_is_left_alone(tmp_path: Path) -> None:
    spec = a_long_log(tmp_path, commits=15)
    before = entries(spec)
    assert trim_log(spec, keep=10) == 0
    assert entries(spec) == before
    assert trim_log(spec, keep=10) == 0


def test_writers_go_on_after_trimming(tmp_path: Path) -> None:
    spec = a_long_log(tmp_path)
    trim_log(spec, keep=0)
    load(spec, [a_row(99)], 99)
    assert len(seen(WRITER.table(spec), WRITER)) == 36


def test_entries_go_that_no_readable_version_needs(tmp_path: Path) -> None:
    spec, now = a_long_log(tmp_path), datetime.now(UTC)
    before = entries(spec)
    planned = trim_unreadable(spec, oldest=24, opened=now, dry_run=True)
    assert planned > 15
    assert entries(spec) == before
    assert trim_unreadable(spec, oldest=24, opened=now) == planned
    assert len(entries(spec)) == len(before) - planned
    assert len(seen(WRITER.table(spec), WRITER, version=24)) == 24
    assert trim_unreadable(spec, oldest=24, opened=now) == 0


def test_a_version_stays_that_somebody_may_have_opened(tmp_path: Path) -> None:
    spec, now = a_long_log(tmp_path), datetime.now(UTC)
    for path in Path(spec.uri, "_delta_log").glob("*.json"):
        age = 100 - int(path.name[:20])
        os.utime(path, times=((now - timedelta(minutes=age)).timestamp(),) * 2)
    assert trim_unreadable(spec, oldest=34, opened=now - timedelta(minutes=101)) == 0
    assert trim_unreadable(spec, oldest=34, opened=now - timedelta(minutes=75, seconds=30)) > 0
    assert len(seen(WRITER.table(spec), WRITER, version=24)) == 24
    with pytest.raises(EngineError, match="at version 18"):
        seen(WRITER.table(spec), WRITER, version=18)


def test_a_table_that_says_how_long_its_log_stays_is_obeyed(tmp_path: Path) -> None:
    spec = a_long_log(tmp_path)
    DeltaTable(spec.uri).alter.set_table_properties({RETENTION: "interval 7 days"})
    before = entries(spec)
    assert trim_unreadable(spec, oldest=36, opened=datetime.now(UTC)) == 0
    assert entries(spec) == before


def test_a_table_that_is_not_there_has_no_log(tmp_path: Path) -> None:
    assert trim_unreadable(a_spec(tmp_path), oldest=36, opened=datetime.now(UTC)) == 0


@pytest.mark.spark
def test_spark_reads_and_writes_a_trimmed_log(tmp_path: Path, spark_writer: SparkWriter) -> None:
    spec = a_long_log(tmp_path)
    append(spark_writer.table(spec), spark_writer, [a_row(50)], 50)
    trim_log(spec, keep=0)
    table = spark_writer.table(spec)
    append(table, spark_writer, [a_row(51)], 51)
    assert len(seen(table, spark_writer)) == 37
    assert not [name for name in entries(spec) if name.lstrip(".") < "0" * 18 + "29"]
