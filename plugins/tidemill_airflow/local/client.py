"""Asks a local Airflow's REST API."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

_PATIENCE = 120.0
"""Seconds to wait for an answer. With SQLite, a call may stand behind the writes of all other processes."""

_COMPONENTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")
UNREACHABLE = (URLError, OSError, HTTPException, ValueError)
"""What is raised while a server does not answer, or not yet as it should."""


class Client:
    """Calls the API at an address. With a password it logs in; without one, everybody is let in."""

    def __init__(self, address: str, *, user: str = "", password: str = "") -> None:
        self._address, self._user, self._password = address, user, password
        self._token = ""
        # A proxy of the environment knows nothing of this machine's own ports.
        self._opener = build_opener(ProxyHandler({}))

    def call(self, method: str, path: str, **body: Any) -> Any:
        """What the API answers to a call of `/api/v2/PATH`.

        Raises:
            HTTPError: it answers with an error.
            URLError: it does not answer.
        """
        if not self._token:
            self._token = self._log_in()
        return self._open(method, f"/api/v2/{path}", body)

    def unhealthy(self, components: Iterable[str] = _COMPONENTS) -> tuple[str, ...]:
        """The components that are not healthy."""
        wanted = tuple(components)
        try:
            found = self._open("GET", "/api/v2/monitor/health", {})
        except UNREACHABLE:
            return ("api-server", *wanted)
        return tuple(name for name in wanted if (found.get(name) or {}).get("status") != "healthy")

    def missing_dags(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """The DAGs that Airflow does not list."""
        return tuple(name for name in wanted if not self._has_dag(name))

    def _has_dag(self, name: str) -> bool:
        try:
            self.call("GET", f"dags/{name}")
        except UNREACHABLE:
            return False
        return True

    def _log_in(self) -> str:
        if not self._user:
            return str(self._open("GET", "/auth/token", {})["access_token"])
        body = {"username": self._user, "password": self._password}
        return str(self._open("POST", "/auth/token", body)["access_token"])

    def _open(self, method: str, path: str, body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = json.dumps(body).encode() if body else None
        request = Request(f"{self._address}{path}", data=data, headers=headers, method=method)
        try:
            with self._opener.open(request, timeout=_PATIENCE) as answer:
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            if error.code == 401:
                self._token = ""
            raise


def listens(port: int) -> bool:
    """Whether a server listens on this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
