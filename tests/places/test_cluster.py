"""Batches on a cluster whose workers lack Tidemill: they get its code, executors die, other versions are refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from spark_servers import Cluster, program

from places.conftest import RUN, Start, ended
from support.projects import ROOT, Mill, write_settings
from support.recovery import a_wide_mill, recomputed
from tidemill.core.protocol.failpoints import VARIABLE
from tidemill.engine.spark.jars import jar_paths, locked_jars
from tidemill.engine.spark.settings import server_conf
from tidemill.project.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.long]


ALONE = """
import sys
from tidemill.core.errors import EngineError
from tidemill.engine.spark import workers
from tidemill.engine.spark.session import ClusterSpark, open_session
workers._PATIENCE = 8
conf = {"spark.driver.host": "127.0.0.1"}
try:
    open_session(ClusterSpark(master=sys.argv[1], jars=tuple(sys.argv[2:]), conf=conf), name="t")
except EngineError as error:
    print(type(error).__name__, error, sep=": ")
"""


def a_mill(folder: Path, spark: Any, on_cluster: dict[str, Any], **settings: Any) -> Mill:
    """The wide pipeline after a batch on this machine; all others are on the cluster, however few their records."""
    settings = {"driver_records": 0, **settings}
    a_wide_mill(folder / "mill", spark, **settings)
    there = a_wide_project(folder / "mill", on_cluster, **settings)
    return Mill(there, spark, "wide")


def a_wide_project(folder: Path, on_cluster: dict[str, Any], **settings: Any) -> Project:
    """The same project with other settings."""
    write_settings(folder, **on_cluster, **settings)
    return Project.load(folder)


def whole(mill: Mill) -> bool:
    """Whether the published rows are what the raw log gives, and none of them is missing."""
    tables = mill.everything()
    assert {name: len(rows) for name, rows in tables.items()} == {"sums": 9, "totals": 5, "quarantine": 2, "late": 6}
    return {name: tables[name] for name in ("sums", "totals")} == recomputed(mill)


def executors(cluster: Cluster) -> list[int]:
    """The processes that execute tasks: its workers started them, in their own groups."""
    found = subprocess.run(["pgrep", "-f", "CoarseGrainedExecutorBackend"], capture_output=True, text=True, check=False)
    return [pid for pid in map(int, found.stdout.split()) if os.getpgid(pid) in cluster.groups]


def test_an_executor_that_is_killed_in_a_batch_changes_nothing(
    tmp_path: Path, spark: Any, cluster: Cluster, on_cluster: dict[str, Any], start: Start
) -> None:
    mill, gate = a_mill(tmp_path, spark, on_cluster, driver_rows=1), tmp_path / "gate"
    # With so few rows for the driver, the executors still have panes to write.
    process = start(RUN, mill.project.folder, **{VARIABLE: f"before:panes:sums=pause:{gate}"})
    reached = Path(f"{gate}.reached")
    end = time.monotonic() + 200
    while not reached.exists() and time.monotonic() < end:
        assert process.poll() is None, ended(process)
        time.sleep(0.1)
    before = executors(cluster)
    assert len(before) == 2
    os.kill(before[0], signal.SIGKILL)
    gate.touch()
    ended(process)
    assert whole(mill)


def test_rows_beyond_the_drivers_bound_are_written_by_the_cluster(
    tmp_path: Path, spark: Any, on_cluster: dict[str, Any], start: Start
) -> None:
    mill = a_mill(tmp_path, spark, on_cluster, driver_rows=1)
    ended(start(RUN, mill.project.folder))
    assert whole(mill)
    engines = [entry.get("engineInfo", "") for entry in DeltaTable(mill.project.published_uri("sums")).history()]
    assert any("Spark" in engine for engine in engines)


def test_a_batch_that_is_submitted_runs_in_the_session_of_the_submit(
    tmp_path: Path, spark: Any, cluster: Cluster, on_cluster: dict[str, Any]
) -> None:
    mill = a_mill(tmp_path, spark, {})
    jars = jar_paths(ROOT / ".tidemill" / "jars", locked_jars(kafka=False, s3=False))
    conf = {**server_conf(jars), **on_cluster["conf"], "spark.ui.enabled": "false"}
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    batch = [str(ROOT / "spark_jobs" / "run_batch.py"), "wide", "--drain", "--until-caught-up"]
    command = [program("spark-submit"), "--master", cluster.master, *settings, *batch]
    environ = {**os.environ, "TIDEMILL_PROJECT": str(mill.project.folder), "PYTHONPATH": str(ROOT / "spark_jobs")}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert whole(mill)
    assert "caught up" in done.stdout


def test_a_cluster_that_gives_no_worker_is_told_so(tmp_path: Path, start: Start) -> None:
    with Cluster(tmp_path, workers=0) as empty:
        said = ended(start(ALONE, empty.master, *jar_paths(ROOT / ".tidemill" / "jars", locked_jars())), 0)
    assert "EngineError: Spark gave no worker in 8 s" in said


def test_workers_with_another_version_are_refused_by_name(
    tmp_path: Path, spark: Any, on_cluster: dict[str, Any], start: Start, bare: str
) -> None:
    mill = a_mill(tmp_path, spark, on_cluster)
    [packages] = Path(bare).parents[1].glob("lib/python*/site-packages")
    other = packages / "tidemill"
    other.mkdir()
    (other / "__init__.py").write_text('__version__ = "9.9.9"\n')
    try:
        said = ended(start(RUN, mill.project.folder), 5)
        assert "tidemill 9.9.9, here 0.1.0" in said
        assert "Traceback" not in said
    finally:
        shutil.rmtree(other)
    ended(start(RUN, mill.project.folder))
    assert whole(mill)
