"""A transaction in the settings of a Spark session lasts for one write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tables.table_writers import PLAN, SparkWriter, a_row, a_spec, append, batch, load, seen, upsert
from tidemill.core.errors import CommitUnknown
from tidemill.tables.fence import Stamp
from tidemill.tables.interface import Landed
from tidemill.tables.spark import commit_settings

pytestmark = pytest.mark.spark

SETTINGS = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.commitInfo.userMetadata",
)


def _settings(writer: SparkWriter) -> list[str | None]:
    return [writer.session.conf.get(name, None) for name in SETTINGS]


def test_a_transaction_leaves_no_trace_in_the_session(tmp_path: Path, spark_writer: SparkWriter) -> None:
    timestamps = spark_writer.session.conf.get("spark.sql.parquet.outputTimestampType")
    with commit_settings(spark_writer.session, Stamp(batch(7), PLAN)):
        assert _settings(spark_writer) == ["pipeline/views", "7", Stamp(batch(7), PLAN).text()]
    with pytest.raises(ZeroDivisionError), commit_settings(spark_writer.session, Stamp(batch(7), PLAN)):
        raise ZeroDivisionError
    assert _settings(spark_writer) == [None, None, None]
    assert spark_writer.session.conf.get("spark.sql.parquet.outputTimestampType") == timestamps


def test_a_leaked_transaction_neither_stops_a_write_nor_survives_it(tmp_path: Path, spark_writer: SparkWriter) -> None:
    table = spark_writer.table(a_spec(tmp_path))
    load(table.spec, [a_row(0)], 9)
    for name, value in zip(SETTINGS, ("pipeline/views", "3", "leaked"), strict=True):
        spark_writer.session.conf.set(name, value)
    assert append(table, spark_writer, [a_row(1)], None) == Landed(2)
    assert seen(table, spark_writer) == [(0, "/", 1), (1, "/", 1)]
    assert _settings(spark_writer) == [None, None, None]


def test_a_failed_merge_leaves_neither_settings_nor_views(tmp_path: Path, spark_writer: SparkWriter) -> None:
    table = spark_writer.table(a_spec(tmp_path))
    with pytest.raises(ValueError, match="rows to upsert"):
        upsert(table, spark_writer, [a_row(0), a_row(0)], 1)
    assert _settings(spark_writer) == [None, None, None]
    assert [t.name for t in spark_writer.session.catalog.listTables() if t.isTemporary] == []


def test_a_success_that_the_log_does_not_hold_is_no_success(tmp_path: Path, spark_writer: SparkWriter) -> None:
    table = spark_writer.table(a_spec(tmp_path))
    table._commit = lambda commit: None
    for number in (1, None):
        with pytest.raises(CommitUnknown, match="Spark reported success, but the log has no such commit"):
            append(table, spark_writer, [a_row(0)], number)
