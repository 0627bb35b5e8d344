"""What commands do in a project where something is wrong with one pipeline, and not with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.projects import Mill
from tidemill.core.exit_code import ExitCode

EXITS = "import sys\nsys.exit(0)\n"
MORE = """
from tidemill import Pipeline
with Pipeline("more", every="1 minute") as more:
    more.read("events", contract="wrong").select("user").publish("users", contract="sums")
"""


@pytest.fixture
def pipelines(mill: Mill) -> Path:
    return mill.project.folder / "pipelines"


@pytest.mark.parametrize("command", [["run"], ["verify"], ["plan", "--dry-run"], ["explain"], ["status"], ["maintain"]])
def test_a_file_that_leaves_the_process_ends_no_command_as_if_it_were_done(tidemill, pipelines, command):
    (pipelines / "pipeline.py").write_text("# 'sums'\n" + EXITS)
    said = tidemill(command[0], "sums", *command[1:])
    assert said.code == ExitCode.WRONG
    assert said.err.startswith(f"error: {pipelines}/pipeline.py:3: leaves the process (SystemExit: 0)")
    assert "fix: " in said.err


def test_status_of_all_shows_those_that_work_and_then_what_is_wrong(tidemill, pipelines, mill):
    (pipelines / "a.py").write_text(EXITS)
    (pipelines / "b.py").write_text(MORE)
    (mill.project.folder / "data_contracts" / "wrong.odcs.yaml").write_text("no contract")
    said = tidemill("status")
    assert said.code == ExitCode.WRONG
    assert "sums" in said.out
    assert [line.split(": ")[1] for line in said.err.splitlines() if line.startswith("error")] == [
        f"{pipelines}/a.py:2",
        f"{mill.project.folder}/data_contracts/wrong.odcs.yaml:1",
    ]
    assert [row["pipeline"] for row in [tidemill("status", "--json").json]] == ["sums"]
    assert tidemill("status", "sums").code == ExitCode.DONE


@pytest.mark.parametrize(
    ("contract", "told"),
    [
        ("[" * 20_000, "a document has at most 100 levels"),
        (
            "k0: &k0 x\n" + "".join(f"k{i}: &k{i} [*k{i - 1}, *k{i - 1}]\n" for i in range(1, 60)),
            "a document has at most",
        ),
        ('kind: "\\ud800"\n', "is half a character"),
        ('kind: "\\UFFFFFFFF"\n', "not YAML: OverflowError"),
    ],
    ids=["deep", "aliases", "half", "beyond"],
)
def test_a_contract_that_nobody_can_read_hides_nothing_of_others(tidemill, pipelines, mill, contract, told):
    (pipelines / "b.py").write_text(MORE)
    (mill.project.folder / "data_contracts" / "wrong.odcs.yaml").write_text(contract)
    said = tidemill("status")
    assert said.code == ExitCode.WRONG
    assert "sums" in said.out
    assert "wrong.odcs.yaml:" in said.err
    assert told in said.err
    lint = tidemill("contract", "lint")
    assert lint.code == ExitCode.WRONG
    assert told in lint.out
    assert "events.odcs.yaml" in lint.out


def test_maintenance_of_all_sees_to_those_that_work(tidemill, pipelines):
    (pipelines / "a.py").write_text(EXITS)
    said = tidemill("maintain")
    assert said.code == ExitCode.WRONG
    assert "state of sums" in said.out
    assert "a.py:2: leaves the process" in said.err
    assert tidemill("maintain", "sums").code == ExitCode.DONE


def test_doctor_and_lint_show_every_fault(tidemill, pipelines, mill):
    (pipelines / "a.py").write_text(EXITS)
    (pipelines / "b.py").write_text(MORE)
    (mill.project.folder / "data_contracts" / "wrong.odcs.yaml").write_text("no contract")
    said = tidemill("doctor", "--no-spark", "--json")
    problems = {row["name"]: row["found"] for row in said.lines if row["state"] == "problem"}
    assert "a.py:2: leaves the process" in problems["pipeline file"]
    assert "wrong.odcs.yaml" in problems["pipeline more"]
    assert "wrong.odcs.yaml" in problems["contracts"]
    assert "ledger of sums" in {row["name"] for row in said.lines}
    lint = tidemill("contract", "lint")
    assert lint.code == ExitCode.WRONG
    assert "wrong.odcs.yaml:1" in lint.out
