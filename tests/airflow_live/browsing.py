"""Airflow's API server with the pages of a project, and a browser that looks at it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from support.projects import ROOT

CHROMIUM = "/usr/bin/chromium"
PASSWORD = "a password of tests"
USERS = {"vera": "viewer", "ada": "admin"}
PREFIX = "/flow"


@contextmanager
def api_server(folder: Path, project: Path) -> Iterator[str]:
    """The address of an API server behind a path prefix; it is gone when left. No scheduler runs."""
    home, port = folder / "home", _free_port()
    home.mkdir()
    address = f"http://127.0.0.1:{port}{PREFIX}"
    (home / "passwords.json").write_text(json.dumps(dict.fromkeys(USERS, PASSWORD)))
    settings = {
        "CORE__DAGS_FOLDER": str(folder / "dags"),
        "CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in USERS.items()),
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "API__HOST": "127.0.0.1",
        "API__PORT": str(port),
        "API__WORKERS": "1",
        "API__BASE_URL": address,
        "API_AUTH__JWT_SECRET": "a secret of tests that is long enough for its algorithm, which wants 64 bytes",
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db?timeout=60",
        "TIDEMILL__PROJECTS": str(project),
    }
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "_AIRFLOW", "TIDEMILL"))}
    environ |= {f"AIRFLOW__{name}": value for name, value in settings.items()} | {"AIRFLOW_HOME": str(home)}
    environ["PYTHONPATH"] = os.pathsep.join(str(ROOT / each) for each in ("spark_jobs", "plugins", "tests"))
    known = [sys.executable, str(ROOT / "tests" / "plugins" / "airflow_pages.py"), str(project)]
    subprocess.run(known, env=environ, check=True, capture_output=True, timeout=200)
    with (home / "api.log").open("wb") as said:
        server = subprocess.Popen(
            [sys.executable, "-m", "airflow", "api-server"],
            env=environ,
            cwd=home,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        _wait(server, f"{address}/api/v2/monitor/health", home / "api.log")
        yield address
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait(30)


def _wait(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    opener, end = build_opener(ProxyHandler({})), time.monotonic() + 200
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text(errors="replace")[-4000:]
        with suppress(URLError, ConnectionError, TimeoutError), opener.open(address, timeout=10):
            return
        time.sleep(0.3)
    raise AssertionError(f"no API server after 200 seconds: {log.read_text(errors='replace')[-4000:]}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
