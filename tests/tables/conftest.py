"""The two writers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tables.table_writers import DeltaRsWriter, SparkWriter, Writer

# The log of a small table is read by two tasks, not by 50.
FEW_TASKS = "spark.databricks.delta.snapshotPartitions"


@pytest.fixture(params=["delta-rs", pytest.param("spark", marks=pytest.mark.spark)])
def writer(request: pytest.FixtureRequest) -> Iterator[Writer]:
    """Each writer in turn."""
    if request.param == "delta-rs":
        yield DeltaRsWriter()
        return
    session = request.getfixturevalue("spark")
    session.conf.set(FEW_TASKS, "2")
    yield SparkWriter(session)
    session.conf.unset(FEW_TASKS)


@pytest.fixture
def spark_writer(spark) -> Iterator[SparkWriter]:
    """The Spark writer alone."""
    spark.conf.set(FEW_TASKS, "2")
    yield SparkWriter(spark)
    spark.conf.unset(FEW_TASKS)
