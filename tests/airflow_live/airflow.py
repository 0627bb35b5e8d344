"""A whole Airflow for tests: scheduler, DAG processor and API server, in a home and a session of their own."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from support.projects import ROOT

PARTS = ("api-server", "dag-processor", "scheduler --skip-serve-logs")

_SETTINGS = {
    "CORE__EXECUTOR": "LocalExecutor",
    "CORE__PARALLELISM": "4",
    "CORE__LOAD_EXAMPLES": "False",
    "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
    "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    "API__HOST": "127.0.0.1",
    "API__WORKERS": "1",
    "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.25",
    # A supervisor that was killed is missed after seconds, not after five minutes.
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "6",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "1",
    "WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
    "USAGE_DATA_COLLECTION__ENABLED": "False",
}


T = TypeVar("T")


class Airflow:
    """Ready when entered; every process of it is gone when left. `environ` is what its processes find beside."""

    def __init__(self, home: Path, dags: Path, environ: dict[str, str]) -> None:
        self._home, self._port, self._token = home, _free_port(), ""
        self._opener = build_opener(ProxyHandler({}))
        address = f"http://127.0.0.1:{self._port}"
        settings = {
            **_SETTINGS,
            "CORE__DAGS_FOLDER": str(dags),
            "CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
            "API__PORT": str(self._port),
            "API__BASE_URL": address,
            "API_AUTH__JWT_SECRET": secrets.token_hex(32),
            # Its processes write to one file: on a busy machine they wait longer than the 5 seconds of the default.
            "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db?timeout=60",
        }
        paths = ("spark_jobs", "plugins", "infra/airflow")
        self._environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "_AIRFLOW", "TIDEMILL"))},
            **{f"AIRFLOW__{name}": value for name, value in settings.items()},
            "AIRFLOW_HOME": str(home),
            "PYTHONPATH": os.pathsep.join(str(ROOT / path) for path in paths),
            **environ,
        }

    def __enter__(self) -> Airflow:
        airflow = f"{sys.executable} -m airflow"
        started = " ".join(f"{airflow} {part} > {part.split()[0]}.log 2>&1 &" for part in PARTS)
        with (self._home / "airflow.log").open("wb") as said:
            self._leader = subprocess.Popen(
                ["/bin/sh", "-c", f"{airflow} db migrate && {{ {started} wait; }}"],
                cwd=self._home,
                env=self._environ,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        try:
            self.wait_for("a scheduler and a DAG processor that are healthy", self._is_healthy)
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
        try:
            return self._asked(method, path, body)
        except HTTPError as error:
            said = error.read().decode(errors="replace")
            raise AssertionError(f"{method} {path} {body}: {error} {said}\n{self.said()}") from error

    def wait_for(self, what: str, look: Callable[[], T], *, seconds: float = 240) -> T:
        """What `look` finds, as soon as it finds it; a busy machine needs many times longer than a quiet one."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._leader.poll() is not None:
                raise AssertionError(f"Airflow ended: {self.said()}")
            if found := look():
                return found
            time.sleep(0.1)
        raise AssertionError(f"{what}: not in {seconds:.0f} seconds\n{self.said()}")

    def said(self) -> str:
        """The last lines of each of its processes, and of the newest logs of tasks."""
        logs = [
            *self._home.glob("*.log"),
            *sorted(self._home.glob("logs/**/*.log"), key=lambda p: p.stat().st_mtime)[-3:],
        ]
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-2500:]}" for log in logs)

    def _is_healthy(self) -> bool:
        try:
            health = self._asked("GET", "monitor/health", {})
        except (URLError, ConnectionError, TimeoutError):
            return False
        return all(health[part]["status"] == "healthy" for part in ("metadatabase", "scheduler", "dag_processor"))

    def _asked(self, method: str, path: str, body: dict[str, Any]) -> Any:
        if not self._token:
            self._token = self._open("GET", "/auth/token", {})["access_token"]
        return self._open(method, f"/api/v2/{path}", body)

    def _open(self, method: str, path: str, body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = Request(
            f"http://127.0.0.1:{self._port}{path}",
            data=json.dumps(body).encode() if body else None,
            headers=headers,
            method=method,
        )
        with self._opener.open(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def _end(self) -> None:
        """Kill everything in the session: tasks are in process groups of their own."""
        for _ in range(50):
            members = list(_members(self._leader.pid))
            for pid in members:
                os.kill(pid, signal.SIGKILL)
            if not members:
                break
            self._leader.poll()
            time.sleep(0.1)
        self._leader.wait(10)


def parent_of(pid: int) -> int:
    """The process that started this one."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    """Whether the process runs, or is stopped; a zombie of the system has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _members(session: int) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, own, *_ = path.read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(own) == session and state not in "ZX":
            yield int(path.parent.name)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
