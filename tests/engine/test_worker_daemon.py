"""Python workers of a Spark on this machine: where they import PySpark from, and that a batch needs no SQL."""

import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pyspark
import pytest
from py4j import java_gateway, protocol  # type: ignore[import-untyped]

from support.projects import an_event, sums
from tidemill.core.errors import EngineError
from tidemill.engine.spark.failures import explained
from tidemill.engine.spark.session import LocalSpark, Spark, Started, open_spark
from tidemill.engine.spark.worker_daemon import files_of_tidemill, forget_if_changed, installed_first
from tidemill.engine.spark.workers import DAEMON


def archives_of(folder: Path, version: bytes) -> list[str]:
    with zipfile.ZipFile(folder / "pyspark.zip", "w") as archive:
        archive.writestr("pyspark/version.py", version)
    return [f"{folder}/pyspark.zip", f"{folder}/py4j-0.10-src.zip"]


def test_archives_come_last_where_their_packages_are_installed(tmp_path: Path) -> None:
    archives = archives_of(tmp_path, Path(pyspark.__file__).with_name("version.py").read_bytes())
    assert installed_first([*archives, *sys.path]) == [*sys.path, *archives]


def test_path_stays_as_it_is_where_another_version_of_pyspark_is_installed(tmp_path: Path) -> None:
    path = [*archives_of(tmp_path, b'__version__ = "4.0.0"'), *sys.path]
    assert installed_first(path) == path


def test_path_stays_as_it_is_where_an_archive_is_missing(tmp_path: Path) -> None:
    path = [f"{tmp_path}/pyspark.zip", *sys.path]
    assert installed_first(path) == path


def test_path_stays_as_it_is_where_pyspark_is_only_in_the_archive(tmp_path: Path) -> None:
    path = [f"{tmp_path}/pyspark.zip", f"{tmp_path}/py4j-0.10-src.zip", str(tmp_path)]
    assert installed_first(path) == path


def test_workers_load_tidemill_anew_only_after_its_files_changed(tmp_path: Path) -> None:
    module, file = ModuleType("tidemill.core"), tmp_path / "core.py"
    file.write_text("old = 1")
    module.__file__ = str(file)
    modules = {"os": ModuleType("os"), "tidemill.core": module}
    before = files_of_tidemill(modules)
    modules["tidemill.later"] = ModuleType("tidemill.later")
    forget_if_changed(modules, before)
    assert set(modules) == {"os", "tidemill.core", "tidemill.later"}
    file.write_text("new = 12")
    forget_if_changed(modules, before)
    assert set(modules) == {"os", "tidemill.later"}


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
    mill = sums(tmp_path, spark, driver_records=0)
    mill.feed([an_event(1)])
    mill.run()
    bare: Any = Spark(lambda: Started(lambda: pytest.fail("a session was made"), spark.sparkContext))
    mill.feed([an_event(2), b"{"])
    done = replace(mill, session=bare).run()
    assert str(done.accounts["events"]) == "read=2 aggregated=1 filtered=0 rejected=1 late=0 shed=0"


@pytest.mark.spark
def test_error_of_a_worker_is_told_without_a_session(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: Any) -> Any:
        yield Path("/nowhere/segment.parquet").read_bytes()

    # As in a process that has made no session yet.
    monkeypatch.setattr(java_gateway, "get_return_value", protocol.get_return_value)
    context: Any = open_spark(LocalSpark(jars=()), name="t").context
    told = r"a file went away .* FileNotFoundError: .*segment\.parquet"
    with pytest.raises(EngineError, match=told), explained("sums: batch 1"):
        context.parallelize([0], 1).mapPartitions(read).collect()
