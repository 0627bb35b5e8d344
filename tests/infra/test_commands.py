"""The commands that people and CI type: setup.sh, make and .ci/run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _run(
    *command: str | Path, cwd: Path = ROOT, patience: int = 60, **environ: str
) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], **environ}
    return subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=patience, check=False)


def _python(fit: bool) -> str:
    return f'case "$1" in -c) exit {0 if fit else 1};; --version) echo Python 3.9.2;; *) echo "$0 $*";; esac'


def test_setup_takes_the_first_python_that_is_new_enough(machine):
    machine.command("python3", _python(fit=False))
    machine.command("python3.13", _python(fit=False))
    fit = machine.command("python3.12", _python(fit=True))
    machine.command("python3.11", _python(fit=True))
    done = _run("/bin/sh", "infra/setup/setup.sh", "lock", PATH=str(machine.bin))
    assert done.stdout == f"{fit} infra/setup/prepare.py lock\n"


def test_setup_without_a_python_says_in_one_line_what_is_needed(machine):
    machine.command("python3", _python(fit=False))
    done = _run("/bin/sh", "infra/setup/setup.sh", PATH=str(machine.bin))
    assert done.returncode == 1
    assert "Python 3.11, 3.12 or 3.13 is needed" in done.stderr
    assert "Python 3.9.2" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("version", "fit"), [("3, 10", False), ("3, 11", True), ("3, 13", True), ("3, 14", False), ("2, 7", False)]
)
def test_setup_and_package_agree_on_the_versions_of_python(version, fit):
    probe = re.search(r"sys\.exit\((.+)\)'", (ROOT / "infra" / "setup" / "setup.sh").read_text())
    condition = probe[1].replace("sys.version_info[:2]", f"({version})")
    assert eval(condition) is not fit
    assert 'requires-python = ">=3.11,<3.14"' in (ROOT / "pyproject.toml").read_text()


def test_make_without_a_target_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[1].split()
    done = _run("make", "--no-print-directory")
    listed = [line.split()[0] for line in done.stdout.splitlines()]
    assert sorted(listed) == sorted(targets)
    assert all(len(line.split()) > 1 for line in done.stdout.splitlines())


@pytest.mark.parametrize("target", ["demo", "test", "test-unit", "check", "bench"])
def test_target_sets_up_first_and_works_in_the_environment(target):
    lines = _run("make", "-n", target).stdout.splitlines()
    assert lines[0] == "infra/setup/setup.sh"
    assert all(line.startswith(". ./.tidemill/env.sh && ") for line in lines[1:])
    assert len(lines) > 1


def test_demo_takes_a_log_from_the_command_line_only():
    assert _run("make", "-n", "demo", "LOG=a b.log").stdout.endswith('tidemill demo --log "$LOG"\n')
    assert _run("make", "-n", "demo", LOG="debug").stdout.endswith("tidemill demo \n")


def test_log_of_the_demo_may_have_blanks_in_its_path(machine, tmp_path):
    (tmp_path / "infra" / "setup").mkdir(parents=True)
    (tmp_path / ".tidemill").mkdir()
    (tmp_path / ".tidemill" / "env.sh").write_text("")
    setup = tmp_path / "infra" / "setup" / "setup.sh"
    setup.write_text("#!/bin/sh\n")
    setup.chmod(0o755)
    machine.command("tidemill", 'for word; do echo "<$word>"; done')
    make = shutil.which("make")
    done = _run(make, "-f", ROOT / "Makefile", "demo", "LOG=a b.log", cwd=tmp_path, PATH=str(machine.bin))
    assert done.stdout.splitlines() == ["<demo>", "<--log>", "<a b.log>"]


@pytest.mark.parametrize("failing", ["", "check", "docs", "test"])
def test_ci_runs_checks_and_tests_and_fails_when_any_does(machine, failing):
    machine.command("make", f'[ "$1" = test ] && echo 3 passed; [ "$1" != "{failing}" ]')
    done = _run("bash", ".ci/run", PATH=f"{machine.bin}:{os.environ['PATH']}")
    assert done.returncode == bool(failing)
    assert machine.calls[:2] == ["make check", "make docs"]
    assert re.fullmatch(r"make test PART=([1-9]|1[0-2])/12", machine.calls[2])
    assert done.stdout.splitlines()[-1] == "3 passed"


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        (["test"], "not long and not crash"),
        (["test", "ALL=1"], "not crash"),
        (["test", "PART=2/6"], "not crash"),
        (["test", "PART="], "not long and not crash"),
        (["test", "ALL="], "not long and not crash"),
        (["test-long"], "long and not crash"),
    ],
)
def test_targets_take_the_tests_that_they_say(words, taken):
    assert f'-m "{taken}"' in _run("make", "-n", *words).stdout


def test_a_part_is_only_taken_from_the_command_line_and_all_is_all():
    assert 'TIDEMILL_LONG_PART="2/6"' in _run("make", "-n", "test", "PART=2/6").stdout
    assert 'TIDEMILL_LONG_PART=""' in _run("make", "-n", "test", "PART=2/6", "ALL=1").stdout
    others = _run("make", "-n", "test", PART="2/6").stdout
    assert 'TIDEMILL_LONG_PART=""' in others
    assert '-m "not long and not crash"' in others


def test_scripts_can_be_executed():
    assert os.access(ROOT / "infra" / "setup" / "setup.sh", os.X_OK)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


PROGRAMS = (
    "chaos",
    "soak-airflow",
    "matrix",
    "bench",
    "bench-audit",
    "bench-cluster",
    "bench-repair",
    "bench-upkeep",
    "bench-history",
    "bench-pages",
    "bench-sliding",
    "bench-windows",
    "bench-pace",
    "bench-airflow",
    "kafka",
    "s3",
    "connect",
    "cluster",
)


@pytest.mark.parametrize("target", PROGRAMS)
def test_target_starts_its_program_as_it_is_typed(target):
    done = _run("make", "--no-print-directory", target, "OPTIONS=--help")
    assert done.returncode == 0, done.stderr
    assert "usage: " in done.stdout
    assert "Traceback" not in done.stderr


def test_every_target_is_started_by_a_test_or_by_ci():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[1].split())
    by_ci = {"setup", "check", "docs", "test"}
    said = (ROOT / ".ci" / "run").read_text()
    assert [name for name in by_ci if f"make {name} " not in said] == ["setup"]
    pytest_alone = {
        name for name in targets if re.search(rf"^{name}: .*\n\t@\$\(RUN\) [^\n]*pytest ", makefile, re.MULTILINE)
    }
    elsewhere = {"help", "demo", "airflow", "lock", "clean", "format"}
    assert targets == by_ci | pytest_alone | elsewhere | set(PROGRAMS)


@pytest.mark.long
@pytest.mark.spark
def test_chaos_of_one_seed_runs_as_it_is_typed(tmp_path):
    options = f"OPTIONS=--kills 1 --figures {tmp_path}/chaos.json"
    done = _run("make", "--no-print-directory", "chaos", "SEEDS=1", options, patience=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "chaos.json").is_file()
