"""`tidemill up` as it is typed: it gets ready, lets in who has the password, runs batches, and leaves nothing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError

import pytest

from support.projects import ROOT
from tidemill.core.protocol.events import Committed
from tidemill.demo.site import PIPELINE, make_site, source_of
from tidemill.project.project import Project
from tidemill_airflow.local.client import Client, free_port, listens
from tidemill_airflow.local.home import USER

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.long]

TIDEMILL = (sys.executable, "-m", "tidemill.cli.main")


@dataclass
class Site:
    """A project over which everything runs, and the process that was typed."""

    project: Project
    port: int
    process: subprocess.Popen[bytes]

    def said(self) -> str:
        return (self.project.folder / "up.log").read_text()

    def type(self, *words: str) -> str:
        command = [*TIDEMILL, "--project", str(self.project.folder), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout

    def wait_for(self, look: Callable[[], object], seconds: float = 280) -> None:
        end = time.monotonic() + seconds
        while not look():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < end, self.said()
            time.sleep(0.2)

    def commits(self) -> list[Committed]:
        return [e.event for e in self.project.ledger(PIPELINE).entries() if isinstance(e.event, Committed)]

    def processes(self) -> list[int]:
        """Those that work in its folder: every part and every task does."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if (path / "cwd").resolve().is_relative_to(self.project.folder):
                    found.append(int(path.name))
            except OSError:
                continue
        return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    project, port = make_site(tmp_path / "site", source_of(str(ROOT))), free_port()
    command = [*TIDEMILL, "--project", str(project.folder), "up", "--generator", "--port", str(port)]
    with (project.folder / "up.log").open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
    found = Site(project, port, process)
    try:
        yield found
    finally:
        found.type("down")
        process.wait(60)


def test_airflow_of_one_command_runs_batches_and_is_gone_though_its_supervisor_was_killed(site: Site) -> None:
    site.wait_for(lambda: "ready after" in site.said())
    address = f"http://127.0.0.1:{site.port}"
    password = re.search(r"password (\S+)", site.said())
    assert password is not None
    assert Client(address, user=USER, password=password[1]).missing_dags([PIPELINE, f"{PIPELINE}.backfill"]) == ()
    for wrong in (Client(address, user=USER, password="guessed"), Client(address)):
        with pytest.raises(HTTPError):
            wrong.call("GET", "dags")

    site.wait_for(site.commits)
    assert f"it runs already:\n  Airflow    {address}" in site.type("up")

    site.process.send_signal(signal.SIGKILL)
    site.process.wait()
    assert listens(site.port)
    assert re.fullmatch(r"ended \d+ processes that were left\n", site.type("down"))
    assert site.processes() == []
    assert not listens(site.port)
