"""The archive of Java's classes: when Spark gets it, and that Java takes it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidemill.engine.spark.jars import locked_jars
from tidemill.engine.spark.shared_classes import CLASS_PATH, JARS, OPTIONS, archive_in, archived, recording, sharing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = locked_jars(kafka=True)


def conf_of(folder: Path, **more: str) -> dict[str, str]:
    return {JARS: ",".join(str(folder / jar.file_name) for jar in ALL), "spark.ui.enabled": "false", **more}


def test_without_an_archive_the_settings_stay(tmp_path: Path) -> None:
    assert sharing(conf_of(tmp_path)) == conf_of(tmp_path)


def test_with_an_archive_jars_of_delta_are_on_the_class_path_and_those_of_kafka_are_not(tmp_path: Path) -> None:
    archive_in(tmp_path).touch()
    found = sharing(conf_of(tmp_path))
    path = found[CLASS_PATH].split(os.pathsep)
    assert path == [str(tmp_path / jar.file_name) for jar in locked_jars()]
    assert set(path) | set(found[JARS].split(",")) == set(conf_of(tmp_path)[JARS].split(","))
    assert not set(path) & set(found[JARS].split(","))
    assert found["spark.ui.enabled"] == "false"


def test_options_and_a_class_path_of_users_stay_and_come_last(tmp_path: Path) -> None:
    archive_in(tmp_path).touch()
    found = sharing({**conf_of(tmp_path), OPTIONS: "-Xss4m", CLASS_PATH: "/opt/more.jar"})
    assert found[OPTIONS].startswith(f'"-XX:SharedArchiveFile={archive_in(tmp_path)}" ')
    assert found[OPTIONS].endswith(" -Xss4m")
    assert found[CLASS_PATH].endswith(f"{os.pathsep}/opt/more.jar")


def test_a_spark_without_other_jars_gets_no_empty_list_of_them(tmp_path: Path) -> None:
    archive_in(tmp_path).touch()
    assert JARS not in sharing({JARS: ",".join(str(tmp_path / jar.file_name) for jar in locked_jars())})


def test_jars_that_are_not_locked_are_not_archived(tmp_path: Path) -> None:
    conf = {JARS: str(tmp_path / "theirs.jar")}
    archive_in(tmp_path).touch()
    assert archived([str(tmp_path / "theirs.jar")]) == []
    assert sharing(conf) == conf


def test_a_folder_whose_name_separates_paths_has_no_archive(tmp_path: Path) -> None:
    odd = tmp_path / "a:b"
    odd.mkdir()
    archive_in(odd).touch()
    assert sharing(conf_of(odd)) == conf_of(odd)


def test_spark_that_takes_an_archive_has_the_class_path_of_the_one_that_wrote_it(tmp_path: Path) -> None:
    archive_in(tmp_path).touch()
    conf = conf_of(tmp_path)
    assert recording(conf, tmp_path / "new.jsa")[CLASS_PATH] == sharing(conf)[CLASS_PATH]


@pytest.mark.spark
def test_java_takes_the_archive_that_set_up_made(spark: SparkSession) -> None:
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]
    java, path = (system.getProperty(name) for name in ("java.home", "java.class.path"))
    options = spark.conf.get(OPTIONS)
    assert options is not None
    taken = next(part.strip('"') for part in options.split() if "SharedArchiveFile" in part)
    # With `on` instead of `auto`, Java ends if an archive does not fit.
    command = [f"{java}/bin/java", "-Xshare:on", taken, "-cp", path, "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
