"""A Spark Connect server for tests, in a process group of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

import pyspark

from support.projects import ROOT, SHORT_LIVED
from tidemill.engine.jars import jar_paths

CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer:
    """Started on a free port of 127.0.0.1, ready when entered, gone when left."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def remote(self) -> str:
        """The address for a client."""
        return f"sc://127.0.0.1:{self._port}"

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> ConnectServer:
        conf = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.jars": ",".join(jar_paths(ROOT / ".tidemill" / "jars")),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.shuffle.partitions": "2",
            # Without it each look of Delta at a table is fifty tasks.
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            **SHORT_LIVED,
        }
        home = Path(pyspark.__file__).parent
        arguments = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        command = [
            str(home / "bin" / "spark-submit"),
            "--master",
            "local[2]",
            "--class",
            CLASS,
            *arguments,
            "spark-internal",
        ]
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        with (self._folder / "server.log").open("wb") as output:
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=environment, stdout=output, stderr=output, start_new_session=True
            )
        self._wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def _wait(self) -> None:
        for _ in range(240):
            assert self._process is not None
            assert self._process.poll() is None, (self._folder / "server.log").read_text()[-3000:]
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.5)
        raise AssertionError("the Spark Connect server did not start")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
