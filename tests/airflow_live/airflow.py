"""A whole Airflow for tests: scheduler, triggerer, DAG processor and API server, in a home of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.error import HTTPError

from tidemill_airflow.local.client import Client, free_port
from tidemill_airflow.local.environment import LocalAirflow
from tidemill_airflow.local.home import Home
from tidemill_airflow.local.install import install_settings
from tidemill_airflow.local.plan import airflow_parts, migration
from tidemill_airflow.local.supervisor import Supervisor

_SETTINGS = {
    "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    # A supervisor that was killed is missed after seconds, not after half a minute.
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "6",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "1",
    "WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
}
_COMPONENTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")

T = TypeVar("T")


class Airflow:
    """Ready when entered; every process of it is gone when left. `environ` is what its processes find beside."""

    def __init__(self, home: Path, dags: Path, environ: dict[str, str]) -> None:
        self._home = Home(home)
        self._home.make()
        airflow = LocalAirflow(home=self._home, dags=dags, port=free_port(), settings=_SETTINGS)
        base = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMILL")}
        self._environ = {**airflow.environ(base), **environ}
        self._client = Client(airflow.address)

    def __enter__(self) -> Airflow:
        assert self._home.hold()
        self._supervisor = Supervisor(self._home)
        install_settings(self._home.folder)
        try:
            self._supervisor.run(migration(self._home, self._environ), asked=lambda: False)
            for part in airflow_parts(self._home, self._environ):
                self._supervisor.start(part)
            healthy = "a scheduler, a triggerer and a DAG processor that are healthy"
            self.wait_for(healthy, lambda: not self._client.unhealthy(_COMPONENTS))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._end()

    def call(self, method: str, path: str, **body: Any) -> Any:
        """What the REST API answers.

        Raises:
            AssertionError: it answers with an error.
        """
        for left in (2, 1, 0):
            try:
                return self._client.call(method, path, **body)
            except HTTPError as error:
                said = error.read().decode(errors="replace")
                # SQLite takes two writers that wait for each other apart, and refuses one of them.
                if not (left and error.code == 500 and "Database error" in said):
                    raise AssertionError(f"{method} {path} {body}: {error} {said}\n{self.said()}") from error
        raise AssertionError

    def wait_for(self, what: str, look: Callable[[], T], *, seconds: float = 240) -> T:
        """What `look` finds, as soon as it finds it; a busy machine needs many times longer than a quiet one."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if ended := self._supervisor.ended():
                raise AssertionError(f"{ended} ended: {self.said()}")
            if found := look():
                return found
            time.sleep(0.1)
        raise AssertionError(f"{what}: not in {seconds:.0f} seconds\n{self.said()}")

    def said(self) -> str:
        """The last lines of each of its processes, and of the newest logs of tasks."""
        folder = self._home.folder
        logs = [
            *folder.glob("parts/*.log"),
            *sorted(folder.glob("logs/**/*.log"), key=lambda p: p.stat().st_mtime)[-3:],
        ]
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-2500:]}" for log in logs)

    def _end(self) -> None:
        self._supervisor.stop(hurry=lambda: True)
        self._home.free()


def parent_of(pid: int) -> int:
    """The process that started this one."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    """Whether the process runs, or is stopped; a zombie of the system has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
