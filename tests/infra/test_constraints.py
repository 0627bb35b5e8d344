"""Airflow's constraints without what Tidemill cannot be installed with."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.projects import ROOT
from support.readme import code


@pytest.fixture(scope="module")
def constraints() -> Any:
    spec = importlib.util.spec_from_file_location("constraints", ROOT / "infra" / "airflow" / "constraints.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LINES = ["# a comment", "", "numpy==1.26.4", "Pandas==2.1.4", "pyspark==4.1.0", "polars==99.0", "nobodys==1.0"]


def test_pins_that_contradict_are_left_out_and_told_with_who_needs_what(
    constraints: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "constraints.txt"
    file.write_text("\n".join(LINES))
    assert constraints.main(str(file)) == 0
    kept, told = capsys.readouterr()
    assert kept.splitlines() == ["# a comment", "", "polars==99.0", "nobodys==1.0"]
    assert "numpy==1.26.4: tidemill needs numpy>=2" in told
    assert "pyspark==4.1.0: tidemill needs pyspark[connect]==4.2.0" in told
    assert "Pandas==2.1.4: tidemill needs pandas" in told


def test_what_other_packages_need_counts_too(constraints: Any) -> None:
    _, left_out = constraints.fitting(["grpcio==1.0.0", "sqlalchemy==1.4.54"], constraints.wishes())
    assert [line.partition(":")[0] for line in left_out] == ["grpcio==1.0.0", "sqlalchemy==1.4.54"]


def test_versions_of_this_environment_contradict_nothing_and_have_no_hashes(
    constraints: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    locked = ROOT / "infra" / "setup" / "requirements.lock"
    assert "--hash=" in locked.read_text()
    assert constraints.main(str(locked)) == 0
    kept, told = capsys.readouterr()
    assert told == "nothing was left out\n"
    assert "hash" not in kept
    pins = [line for line in kept.splitlines() if line and not line.lstrip().startswith("#")]
    assert len(pins) > 100
    assert all(constraints._PINNED.match(line) and not line.endswith("\\") for line in pins)


def test_commands_of_the_page_name_the_program(constraints: Any) -> None:
    _, command = code("guides/airflow-deployment", "sh")[0].strip().splitlines()
    python, program, file, sign, _ = command.split()
    assert (python, sign, (ROOT / program).is_file()) == ("python", ">", True)
    assert re.fullmatch(r"constraints-3\.\d+\.txt", file)


def test_image_is_made_of_what_the_page_puts_into_its_folder() -> None:
    text = (ROOT / "infra" / "airflow" / "Containerfile").read_text()
    page = (ROOT / "docs" / "guides" / "airflow-deployment.md").read_text()
    copied = re.findall(r"^COPY --chown=airflow:0 (.+) \S+$", text, re.MULTILINE)
    assert [name for line in copied for name in line.split()] == ["tidemill-*.whl", "constraints.txt", "project"]
    assert "`constraints.txt`, and the project in `project`" in page
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [named] = re.findall(r"^ARG EXTRAS=(.+)$", text, re.MULTILINE)
    assert set(named.split(",")) <= extras.keys()
