"""Python workers of a Spark on this machine: where they import PySpark from, and that a batch needs no SQL."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.projects import an_event, sums
from tidemill.engine.spark.session import Spark
from tidemill.engine.spark.worker_daemon import installed_first
from tidemill.engine.spark.workers import DAEMON


def test_archives_come_last_where_their_packages_are_installed(tmp_path: Path) -> None:
    archives = [f"{tmp_path}/pyspark.zip", f"{tmp_path}/py4j-0.10-src.zip"]
    assert installed_first([*archives, *sys.path]) == [*sys.path, *archives]


def test_path_stays_as_it_is_where_pyspark_is_only_in_the_archive(tmp_path: Path) -> None:
    path = [f"{tmp_path}/pyspark.zip", f"{tmp_path}/py4j-0.10-src.zip", str(tmp_path)]
    assert installed_first(path) == path


@pytest.mark.spark
def test_workers_import_pyspark_from_its_folder(spark: Any) -> None:
    def files(numbers: Any) -> Any:
        import py4j
        import pyspark

        yield from ((pyspark.__file__, py4j.__file__) for _ in numbers)

    for name, value in DAEMON.items():
        assert spark.sparkContext.getConf().get(name) == value
    [found] = spark.sparkContext.parallelize([0], 1).mapPartitions(files).collect()
    assert not [file for file in found if ".zip" in file]


@pytest.mark.spark
def test_batch_that_workers_aggregate_makes_no_session(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1)])
    mill.run()
    bare: Any = Spark(lambda: pytest.fail("a session was made"), spark.sparkContext)
    mill.feed([an_event(2), b"{"])
    done = replace(mill, session=bare).run()
    assert str(done.accounts["events"]) == "read=2 aggregated=1 filtered=0 rejected=1 late=0 shed=0"
