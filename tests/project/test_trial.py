"""What tests of users' pipelines may give, and how pytest reports what Tidemill refuses in them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import type_command
from support.projects import ROOT


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A new project."""
    assert type_command(None, "init", tmp_path / "shop").code == 0
    return tmp_path / "shop"


REFUSED = """
import pytest

@pytest.fixture(scope="session")
def tidemill_session():
    return None  # nothing here needs Spark

def helper(sales):
    sales.rows("other")

def test_in_a_helper(trial):
    helper(trial("sales"))

def test_of_no_pipeline(trial):
    trial("sale")
"""


def test_reports_of_refusals_end_at_the_line_of_the_test(made: Path) -> None:
    said = report_of(made, REFUSED)
    assert '>       sales.rows("other")\nE       tidemill.core.errors.ConfigError: sales publishes sales_by_m' in said
    assert "E         fix: name one of them\n\ntests/test_refused.py:9: ConfigError" in said
    assert '>       trial("sale")\n' in said
    assert "E         fix: did you mean `sales`?\n\ntests/test_refused.py:15: DeclarationError" in said
    assert "trial.py" not in said
    assert "2 failed" in said


def test_the_whole_trace_is_there_for_who_asks(made: Path) -> None:
    said = report_of(made, REFUSED, "--full-trace")
    assert "spark_jobs/tidemill/testing/trial.py" in said
    assert "fix: name one of them" in said


def test_errors_that_tidemill_did_not_mean_keep_their_frames(made: Path) -> None:
    said = report_of(made, REFUSED.replace('sales.rows("other")', "sales.rows([])"))
    assert "TypeError: unhashable type: 'list'" in said
    assert "trial.py" in said


def test_a_project_that_cannot_be_read_is_reported_as_its_text(made: Path) -> None:
    (made / "tidemill.toml").write_text("[lake]\npath = 7\n", encoding="utf-8")
    said = report_of(made, REFUSED)
    [first, *_] = said.partition("ERROR at setup of test_in_a_helper")[2].splitlines()[1:]
    assert first.startswith(str(made / "tidemill.toml")), said
    assert "fixtures.py" not in said
    assert "2 errors" in said


def report_of(project: Path, test: str, *options: str) -> str:
    (project / "tests" / "test_refused.py").write_text(test, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/test_refused.py", *options]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "spark_jobs"), "TIDEMILL_PROJECT": str(project)}
    done = subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout
