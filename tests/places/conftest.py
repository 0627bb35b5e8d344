"""A cluster and a Connect server whose Python lacks Tidemill, and batches in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from spark_servers import Cluster, ConnectServer

from matrix.suite import a_python_without_tidemill, cluster_settings
from support.projects import ROOT, SHORT_LIVED

RUN = """
import sys
from tidemill.cli.main import main
main(["--project", sys.argv[1], "run", "wide", "--drain", "--until-caught-up"])
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with all packages but Tidemill."""
    return a_python_without_tidemill(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, bare: str) -> Iterator[Cluster]:
    """One with two workers."""
    with Cluster(tmp_path_factory.mktemp("cluster"), python=bare) as found:
        yield found


@pytest.fixture
def on_cluster(cluster: Cluster, bare: str) -> dict[str, Any]:
    """What a project says to use it."""
    return cluster_settings(cluster.master, bare)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, bare: str) -> Iterator[ConnectServer]:
    """A Connect server."""
    with ConnectServer(tmp_path_factory.mktemp("connect"), conf=SHORT_LIVED, python=bare) as found:
        yield found


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a script with arguments in a process of its own, which has ended when the test has."""
    started: list[subprocess.Popen[str]] = []

    def begin(script: str, *arguments: object, **environ: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "spark_jobs"), **environ}
        command = [sys.executable, "-c", script, *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, env=environment, text=True, start_new_session=True, **pipes))  # type: ignore[call-overload]
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    """What a process said until it ended with this code."""
    out, err = process.communicate(timeout=240)
    assert process.returncode == code, (out + err)[-3000:]
    return out + err
