"""What `tidemill init` makes is a project that runs, with tests that pass and can fail."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from support.commands import type_command
from support.projects import ROOT
from support.readme import code, page, typed
from tidemill.core.errors import ConfigError
from tidemill.project.project import Project
from tidemill.testing import Trial

BOUND = r"`(logicalTypeOptions: \{minimum: 0, maximum: \d+\})`"
"""What a page adds to a contract, so that it can be broken."""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project."""
    monkeypatch.setenv("TIDEMILL_JARS", str(ROOT / ".tidemill" / "jars"))
    said = type_command(None, "init", tmp_path / "shop")
    assert said.code == 0
    assert f"next: cd {tmp_path / 'shop'}, and what its README.md says" in said.out.replace("\n", " ")
    return tmp_path / "shop"


def test_a_new_project_has_no_faults(made: Path) -> None:
    assert Project.load(made).pipeline("sales").inputs[0].topic == "orders"
    assert type_command(made, "contract", "lint").out == "2 contracts, no errors, 0 warnings\n"
    readme = (made / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# shop\n")
    named = re.findall(r"`(?!rides)([\w./]+\.\w+)`", readme)
    assert [n for n in named if not (made / n).exists()] == []
    assert not [path for path in made.rglob("*") if "@NAME@" in path.name or path.suffix == ".txt"]


def test_the_workflow_installs_what_its_variable_names_and_stops_without_it(made: Path) -> None:
    text = (made / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    job = yaml.safe_load(text)["jobs"]["test"]
    assert job["env"] == {"TIDEMILL": "${{ vars.TIDEMILL }}"}
    [install] = [step["run"] for step in job["steps"] if "pip install" in step.get("run", "")]
    script = f'pip() {{ echo "$@"; }}; {install}'
    for named, code_, said in (("a.whl", 0, "install a.whl pytest"), ("", 127, "set the variable TIDEMILL")):
        done = subprocess.run(
            ["bash", "-c", script], env={"TIDEMILL": named}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, said in done.stdout + done.stderr) == (code_, True), done


@pytest.mark.parametrize("name", ["9lives", "a b", "-x", "a" * 64])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    said = type_command(None, "init", "--", tmp_path / name)
    assert said.code == 5
    assert "not a name for a project" in said.err
    assert not (tmp_path / name).exists()


def test_nothing_is_written_over(made: Path) -> None:
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
    said = type_command(None, "init", made)
    assert said.code == 5
    assert "is there already" in said.err
    assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before
    file = made / "file"
    file.touch()
    assert "is there already" in type_command(None, "init", file).err


def test_a_project_inside_another_is_made_with_a_warning(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert type_command(None, "init", made.parent / "other").err == ""
    monkeypatch.chdir(made / "pipelines")
    said = type_command(None, "init", "bikes")
    assert (said.code, said.err.startswith(f"warning: bikes is inside the project {made}, but")) == (0, True)
    assert (made / "pipelines" / "bikes" / "tidemill.toml").is_file()


OWN = {"sales_by_minute": "rides_by_minute", "sales": "rides", "orders": "rides", "shop": "station", "cents": "minutes"}
"""How names of the example are edited."""


def test_the_example_gives_way_to_a_pipeline_of_ones_own(made: Path) -> None:
    *_, copies, looks = re.findall(r"^```sh\n(.*?)^```$", (made / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    rides = [{"ts": f"2026-01-01T10:0{n}:00Z", "station": "north", "minutes": n} for n in range(3)]
    (made / "rides.jsonl").write_text("".join(json.dumps(ride) + "\n" for ride in rides))
    done = typed(copies, made)
    assert (done.returncode, done.stderr) == (0, "")
    for path in (made / "pipelines" / "rides.py", made / "data_contracts" / "rides_by_minute.odcs.yaml"):
        path.write_text(re.sub("|".join(OWN), lambda found: OWN[found[0]], path.read_text()))
    done = typed(looks, made)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 contracts, no errors" in done.stdout
    assert "rides: batch 1 would read 3 records" in done.stdout


def test_records_for_a_topic_that_the_pipeline_does_not_read_are_refused(made: Path, tmp_path: Path) -> None:
    trial = Trial(Project.load(made), "sales", tmp_path / "lake", cast("Any", None))
    trial.give("orders", {"shop": "north"})
    with pytest.raises(ConfigError, match="sales does not read 'order'; it reads orders"):
        trial.give("order", {"shop": "north"})


@pytest.mark.spark
def test_tests_of_a_new_project_and_of_the_page_on_testing_pass(made: Path) -> None:
    (made / "tests" / "test_page.py").write_text("\n".join(code("guides/testing", "python")), encoding="utf-8")
    contract, [bound] = made / "data_contracts" / "sales_by_minute.odcs.yaml", re.findall(BOUND, page("guides/testing"))
    text = contract.read_text()
    contract.write_text(text.replace("turnover, logicalTypeOptions: {minimum: 0}", f"turnover, {bound}"))
    done = result_of(made)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout
    calls = [float(seconds) for seconds in re.findall(r"^([\d.]+)s call", done.stdout, re.MULTILINE)]
    assert len(calls) == 5


@pytest.mark.long
@pytest.mark.spark
def test_tests_of_a_new_project_fail_when_it_is_changed(made: Path) -> None:
    pipeline = made / "pipelines" / "sales.py"
    pipeline.write_text(pipeline.read_text().replace('Sum("cents")', 'Max("cents")').replace("Sum,", "Max,"))
    failed = result_of(made, "-k", "turnover")
    assert failed.returncode == 8, failed.stdout
    assert "1 failed" in failed.stdout


def result_of(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidemill.cli.main", "test", "tests", *words]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "spark_jobs"), "TIDEMILL_PROJECT": str(project)}
    options = [] if words else ["--durations=0"]
    return subprocess.run(
        [*command, *options], cwd=project, env=environ, capture_output=True, text=True, timeout=250, check=False
    )


@pytest.mark.long
@pytest.mark.spark
def test_commands_of_the_readme_of_a_new_project_work(made: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", (made / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    of_a_clone, of_a_package, looks, first_batch, *_ = blocks
    assert "tidemill jars fetch" in of_a_package
    assert "tidemill test " in looks
    # The tests of a new project have a test of their own.
    looks = re.sub(r"^tidemill test .*", "", looks, flags=re.MULTILINE)
    script = of_a_clone.replace("/path/to/tidemill", str(ROOT)) + looks + first_batch
    done = typed(script, made, patience=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no problems, but not all topics are there: see topics of sales" in done.stdout
    assert "caught up after 1 batch" in done.stdout
    assert (made / "lake" / "published" / "sales_by_minute" / "_delta_log").is_dir()
