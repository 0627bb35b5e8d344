"""How commands fail: exit codes, one block of text, and no stack trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidemill.cli import failures, main
from tidemill.cli.exit_codes import MEANINGS
from tidemill.core import errors
from tidemill.core.errors import Busy, ConfigError, EngineError, TidemillError
from tidemill.core.exit_code import ExitCode


def all_errors(kind: type[TidemillError] = TidemillError) -> list[type[TidemillError]]:
    return [kind, *(deeper for below in kind.__subclasses__() for deeper in all_errors(below))]


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_exit_code_of_every_error_is_in_the_table(kind):
    assert ExitCode(kind.exit_code) in MEANINGS


def test_no_error_on_purpose_looks_like_success_a_typo_or_a_defect():
    assert not {kind.exit_code for kind in all_errors()} & {ExitCode.DONE, ExitCode.DEFECT, ExitCode.USAGE}


def test_errors_that_may_pass_by_themselves_have_codes_of_their_own():
    assert {kind.exit_code for kind in all_errors() if kind.retryable} == {ExitCode.BUSY, ExitCode.RETRY}
    assert errors.AuditBlocked.exit_code == ExitCode.BLOCKED


def test_every_exit_code_is_explained_in_help(tidemill):
    said = tidemill("--help")
    for code, meaning in MEANINGS.items():
        assert f"{code.value:>3}  {meaning}" in said.out


def test_unknown_pipeline_is_wrong_input_with_the_one_that_was_meant(tidemill):
    for command in (
        ["run", "sum"],
        ["plan", "sum", "--dry-run"],
        ["status", "sum"],
        ["history", "sum"],
        ["explain", "sum"],
    ):
        said = tidemill(*command)
        assert said.code == ExitCode.WRONG
        assert "there is no pipeline `sum`" in said.err
        assert "fix: did you mean `sums`?" in said.err
        assert said.out == ""


def test_error_is_one_block_without_a_stack_trace(tidemill):
    said = tidemill("run", "sum")
    assert said.err.splitlines()[0].startswith("error: ")
    assert "Traceback" not in said.err


def test_debug_shows_the_stack_trace_too(tidemill, mill, monkeypatch):
    result = CliRunner().invoke(
        main.app, ["--project", str(mill.project.folder), "status", "sum"], env={failures.DEBUG: "1"}
    )
    assert "Traceback" in result.stderr
    assert "error: " in result.stderr


def test_folder_without_a_project_is_wrong_input(tmp_path):
    result = CliRunner().invoke(main.app, ["--project", str(tmp_path / "nowhere"), "status"])
    assert result.exit_code == ExitCode.WRONG
    assert "there is no tidemill.toml" in result.stderr


def test_typo_is_a_usage_error(tidemill):
    assert tidemill("stats").code == ExitCode.USAGE
    assert tidemill("run", "sums", "--limit", "0").code == ExitCode.USAGE


def test_interrupt_ends_with_130_and_says_how_to_go_on(tidemill, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tidemill.project.project.Project.load", interrupted)
    said = tidemill("status")
    assert said.code == ExitCode.INTERRUPTED
    assert "interrupted" in said.err
    assert "Traceback" not in said.err


def test_defect_shows_its_name_and_how_to_see_more(monkeypatch, capsys):
    def broken(*_: object) -> None:
        raise RuntimeError("first\nsecond")

    monkeypatch.setattr("tidemill.project.project.Project.load", broken)
    with pytest.raises(SystemExit) as ended:
        main.main(["status"])
    said = capsys.readouterr().err
    assert ended.value.code == ExitCode.DEFECT
    assert "error: unexpected RuntimeError: first" in said
    assert "TIDEMILL_DEBUG=1" in said
    assert "Traceback" not in said


def test_error_as_json_has_what_a_program_needs():
    assert failures.failed(Busy("held", fix="wait")) == {
        "event": "failed",
        "error": "Busy",
        "message": "held",
        "fix": "wait",
        "exit_code": 3,
        "retryable": True,
    }


def test_command_in_the_shell_has_the_exit_code(tmp_path: Path):
    done = subprocess.run(
        [Path(sys.executable).with_name("tidemill"), "--project", tmp_path, "status"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.WRONG
    assert done.stdout == ""
    assert "there is no tidemill.toml" in done.stderr


def test_error_without_a_fix_has_no_empty_line_for_it(capsys):
    failures.show_error(ConfigError("wrong"))
    assert capsys.readouterr().err == "error: wrong\n"


def test_a_failing_spark_is_worth_another_try():
    assert EngineError.exit_code == ExitCode.RETRY
