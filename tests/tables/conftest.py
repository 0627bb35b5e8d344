"""The two writers."""

from __future__ import annotations

import pytest

from tables.table_writers import DeltaRsWriter, SparkWriter, Writer


@pytest.fixture(params=["delta-rs", pytest.param("spark", marks=pytest.mark.spark)])
def writer(request: pytest.FixtureRequest) -> Writer:
    """Each writer in turn."""
    return DeltaRsWriter() if request.param == "delta-rs" else SparkWriter(request.getfixturevalue("spark"))


@pytest.fixture
def spark_writer(spark) -> SparkWriter:
    """The Spark writer alone."""
    return SparkWriter(spark)
