"""The rows of `tidemill doctor` about Airflow: another process looks, which may load it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tidemill.cli.views.checked import Checked, State

if TYPE_CHECKING:
    from tidemill.project.project import Project

_PATIENCE = 120
_LAST = 300


def check_airflow(project: Project, *, ask: bool) -> Iterator[Checked]:
    """Check the Airflow beside a project, where Airflow is installed. With `ask` it is loaded, which takes seconds."""
    if find_spec("airflow") is None or find_spec("tidemill_airflow") is None:
        return
    words = ["look", "--project", str(project.folder), *(["--ask"] if ask else [])]
    command = [sys.executable, "-m", "tidemill_airflow.local", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        yield Checked(name="airflow", state=State.PROBLEM, found=f"no answer within {_PATIENCE} s", fix="airflow info")
        return
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name": ')]
    for row in rows:
        yield Checked(name=row["name"], state=State(row["state"]), found=row["found"], fix=row["fix"])
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-_LAST:]
        yield Checked(name="airflow", state=State.PROBLEM, found=f"cannot be asked: {said}", fix="airflow info")
