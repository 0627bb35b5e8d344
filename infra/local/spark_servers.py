"""Spark servers on this machine, for tests and experiments: a Connect server, and a cluster with workers.

`python infra/local/spark_servers.py connect` (or `cluster`) starts one, prints how a project reaches it, and stops it
with Ctrl-C. Both use the Spark that is installed as a package, and listen only on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from servers import KEPT, ROOT, Server, command, free_ports, listens, until_ended

from tidemill.core.errors import EngineError
from tidemill.run.connect_server import ConnectOptions, connect_command, spark_environ, spark_home

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
REGISTERED = "Successfully registered with master"
JARS = ROOT / ".tidemill" / "jars"


@dataclass
class ConnectServer:
    """A Spark Connect server with its own Spark or, with `master`, that of a cluster. Its port stays the same."""

    folder: Path
    port: int = 0
    master: str = "local[2]"
    conf: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable

    def __post_init__(self) -> None:
        self.port = self.port or free_ports(1)[0]
        self._server = Server("the Spark Connect server", self.folder / "connect.log", patience=120, port=self.port)

    @property
    def remote(self) -> str:
        """The value for `[spark] remote` of a project."""
        return f"sc://127.0.0.1:{self.port}"

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._server.is_running

    def start(self) -> ConnectServer:
        """Start the server and wait until it serves.

        Raises:
            EngineError: it exited, or did not serve in time.
        """
        options = ConnectOptions(jars=JARS, port=self.port, master=self.master, python=self.python, conf=self.conf)
        made = connect_command(options)
        self._server.start(made.command, ready=lambda _: listens(self.port), environ=made.environ)
        return self

    def stop(self) -> None:
        """Stop the server."""
        self._server.stop()

    def kill(self) -> None:
        """Kill the server at once, with all that it does."""
        self._server.kill()

    def __enter__(self) -> ConnectServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass
class Cluster:
    """A standalone master and workers with one core each. Workers run Python with `python`."""

    folder: Path
    port: int = 0
    workers: int = 2
    memory: str = "1g"
    python: str = sys.executable

    def __post_init__(self) -> None:
        self.port = self.port or free_ports(1)[0]
        self._servers: list[Server] = []

    @property
    def master(self) -> str:
        """The value for `[spark] master` of a project."""
        return f"spark://127.0.0.1:{self.port}"

    @property
    def groups(self) -> tuple[int, ...]:
        """The process groups of master and workers. Executors are in the groups of their workers."""
        return tuple(server.pid for server in self._servers)

    def start(self) -> Cluster:
        """Start the cluster and wait until the workers are registered with the master.

        Raises:
            EngineError: a part of it exited, or was not ready in time.
        """
        address = ["--host", "127.0.0.1", "--webui-port", "0"]
        self._launch("master", [MASTER, *address, "--port", str(self.port)], ready="I have been elected leader")
        for number in range(1, self.workers + 1):
            size = ["--cores", "1", "--memory", self.memory]
            self._launch(f"worker-{number}", [WORKER, *address, *size, self.master], ready=REGISTERED)
        return self

    def stop(self) -> None:
        """Stop all parts."""
        for server in reversed(self._servers):
            server.stop()
        self._servers.clear()

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _launch(self, name: str, arguments: Sequence[str], *, ready: str) -> None:
        server = Server(f"the cluster's {name}", self.folder / f"{name}.log", patience=120)
        self._servers.append(server)
        environ = spark_environ(self.python) | {
            "SPARK_WORKER_DIR": str(self.folder / name),
            "SPARK_LOG_DIR": str(self.folder),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        try:
            server.start([program("spark-class"), *arguments], ready=lambda said: ready in said, environ=environ)
        except EngineError:
            self.stop()
            raise


def program(name: str) -> str:
    """The path of a command of the Spark that is installed as a package."""
    return str(spark_home() / "bin" / name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of them until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="spark_servers.py", description=__doc__)
    parser.add_argument("what", choices=("connect", "cluster"))
    parser.add_argument("--folder", type=Path, default=KEPT / "spark", help="what it keeps")
    parser.add_argument("--port", type=int, default=0, help="15002 of a Connect server, 7077 of a cluster")
    given = parser.parse_args(arguments)

    def run() -> None:
        if given.what == "connect":
            with ConnectServer(given.folder, port=given.port or 15002) as server:
                until_ended(f'Spark Connect: [spark] remote = "{server.remote}"')
        else:
            with Cluster(given.folder, port=given.port or 7077) as cluster:
                until_ended(f'A cluster of Spark: [spark] master = "{cluster.master}"')

    return command(run)


if __name__ == "__main__":
    sys.exit(main())
