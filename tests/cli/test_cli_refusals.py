"""Every command where the storage refuses: an exit code and one clear message each, and nothing to report."""

from __future__ import annotations

import importlib
import os
import pkgutil
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import tidemill
from machine.conftest import run
from machine.tiny import TinyAttempt
from support.commands import Said, type_command
from support.projects import NO_SPARK, Mill, an_event, sums
from support.short_forms import shortened
from tidemill.cli.main import app
from tidemill.core.errors import EngineError
from tidemill.core.exit_code import ExitCode
from tidemill.project.project import Project
from tidemill.run import batch

NOBODY = 65534
SIZE = 4 << 20

COMMANDS = {
    "init": "init NEW",
    "run": "run sums",
    "plan": "plan sums --dry-run",
    "status": "status",
    "history": "history sums",
    "explain": "explain sums",
    "explain a number": "explain sums --window 2026-01-01T00:00:00Z --key a",
    "backfill": "backfill sums --from-offsets events-0:1",
    "rewind": "rewind sums --to 1 --why test",
    "late ls": "late ls sums",
    "late windows": "late windows sums",
    "late admit": "late admit sums",
    "quarantine ls": "quarantine ls sums",
    "quarantine show": "quarantine show sums",
    "quarantine replay": "quarantine replay sums",
    "audit show": "audit show sums",
    "audit accept": "audit accept sums --why test",
    "audit divert": "audit divert sums --why test",
    "audit retry": "audit retry sums --why test",
    "verify": "verify sums",
    "maintain": "maintain",
    "contract lint": "contract lint",
    "contract diff": "contract diff data_contracts data_contracts",
    "contract test": "contract test events INPUT",
    "contract infer": "contract infer INPUT",
    "contract import": "contract import json-schema INPUT",
    "contract docs": "contract docs --out NEW",
    "contract export": "contract export json-schema events",
    "doctor": "doctor --no-spark",
    "gone": "gone sums events-0 --why test",
    "adopt": "adopt sums sums --why test",
    "log create": "log create other",
    "log ls": "log ls",
    "log cat": "log cat events",
    "log trim": "log trim events --partition 0 --before 1",
    "log append": "log append events INPUT --format jsonl",
    "log delete": "log delete events --yes",
    # The last: it begins a generation, and others are refused until it is complete.
    "rebuild": "rebuild sums",
    # Last of all, because its other name stays.
    "rename": "rename sums other",
}
ELSEWHERE = {"airflow install", "demo", "down", "jars fetch", "log bridge", "test", "up"}
"""Change or start an Airflow; make a project; ask a repository of packages; ask Kinesis; start pytest."""

Condition = Callable[[Mill, ExitStack], None]


@contextmanager
def a_disk(folder: Path) -> Iterator[Path]:
    """A small file system of its own; the test is skipped where none can be mounted."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def full(mill: Mill, _: ExitStack) -> None:
    with suppress(OSError), (mill.project.folder.parent / "filling").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def read_only(mill: Mill, _: ExitStack) -> None:
    subprocess.run(["mount", "-o", "remount,ro", mill.project.folder.parent], check=True)


def lake_missing(mill: Mill, _: ExitStack) -> None:
    shutil.rmtree(mill.project.settings.lake)


def log_missing(mill: Mill, _: ExitStack) -> None:
    shutil.rmtree(mill.project.settings.log)


def contracts_missing(mill: Mill, _: ExitStack) -> None:
    shutil.rmtree(mill.project.settings.contracts)


def a_file_instead(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("no folder")


def lake_a_file(mill: Mill, _: ExitStack) -> None:
    a_file_instead(Path(mill.project.settings.lake))


def log_a_file(mill: Mill, _: ExitStack) -> None:
    a_file_instead(Path(mill.project.settings.log))


def ledger_a_file(mill: Mill, _: ExitStack) -> None:
    a_file_instead(Path(mill.project.table_uri("sums", "ledger")))


def published_a_file(mill: Mill, _: ExitStack) -> None:
    a_file_instead(Path(mill.project.published_uri("sums")))


def pipelines_a_file(mill: Mill, _: ExitStack) -> None:
    a_file_instead(Path(mill.project.settings.pipelines))


def settings_a_folder(mill: Mill, _: ExitStack) -> None:
    path = mill.project.folder / "tidemill.toml"
    path.unlink()
    path.mkdir()


def no_rights_for(*places: str) -> Condition:
    def take(mill: Mill, stack: ExitStack) -> None:
        for place in places:
            (mill.project.folder / place).chmod(0o700)
        os.seteuid(NOBODY)
        stack.callback(os.seteuid, 0)

    return take


def no_right_to_write(mill: Mill, stack: ExitStack) -> None:
    os.seteuid(NOBODY)
    stack.callback(os.seteuid, 0)


CONDITIONS: dict[str, Condition] = {
    "full": full,
    "read-only": read_only,
    "lake missing": lake_missing,
    "log missing": log_missing,
    "contracts missing": contracts_missing,
    "lake a file": lake_a_file,
    "log a file": log_a_file,
    "ledger a file": ledger_a_file,
    "published a file": published_a_file,
    "pipelines a file": pipelines_a_file,
    "settings a folder": settings_a_folder,
    "no right to write": no_right_to_write,
    "no rights for the lake": no_rights_for("lake"),
    "no rights for the log": no_rights_for("log"),
    "no rights for pipelines": no_rights_for("pipelines"),
    "no rights for contracts": no_rights_for("data_contracts"),
    "no rights for the settings": no_rights_for("tidemill.toml"),
}


WRITING = ("run", "rewind", "backfill", "quarantine replay", "maintain", "log create", "log append")
ENDS: dict[str, dict[str, ExitCode]] = {
    "full": dict.fromkeys(WRITING, ExitCode.RETRY) | {"status": ExitCode.DONE, "history": ExitCode.DONE},
    "read-only": dict.fromkeys(WRITING, ExitCode.WRONG) | {"status": ExitCode.DONE, "history": ExitCode.DONE},
    "no right to write": dict.fromkeys(WRITING, ExitCode.WRONG) | {"status": ExitCode.DONE, "history": ExitCode.DONE},
    "lake a file": dict.fromkeys(("run", "status", "history", "maintain", "rebuild"), ExitCode.WRONG),
    "ledger a file": dict.fromkeys(("run", "status", "history", "maintain"), ExitCode.WRONG),
    "log a file": dict.fromkeys(("run", "log ls", "log append", "log create"), ExitCode.WRONG),
    "log missing": dict.fromkeys(("run", "plan", "log append", "log cat"), ExitCode.WRONG),
    "no rights for the lake": dict.fromkeys(("run", "status", "history", "maintain", "rebuild"), ExitCode.WRONG),
}
"""Of some, what their end must be: whether it passes by itself, or wants a person."""
SHORT = ("full", "no right to write", "log missing")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with three committed batches, made without Spark."""
    # Whoever has no rights may not be able to read Python's own files either.
    for module in pkgutil.walk_packages(tidemill.__path__, "tidemill."):
        importlib.import_module(module.name)
    folder = tmp_path_factory.mktemp("made") / "project"
    mill = sums(folder, NO_SPARK)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "Attempt", TinyAttempt)
        for number in range(3):
            mill.feed([an_event(17 * number), b"{cut", an_event(17 * number + 1)])
            run(mill)
    mill.feed([an_event(60)])
    return folder


@pytest.fixture
def disk() -> Iterator[Path]:
    """Where others may look, too: pytest's own folders are closed to them."""
    with tempfile.TemporaryDirectory(prefix="tidemill-disk-") as folder:
        Path(folder).chmod(0o755)
        with a_disk(Path(folder) / "disk") as mounted:
            mounted.chmod(0o755)
            yield mounted


def _is_clear(said: Said) -> bool:
    """Done, or one error on one block; a command that looks at many things may tell a fault of each."""
    if said.code in (ExitCode.DONE, ExitCode.NOTHING_TO_DO):
        return not said.err
    if said.code == ExitCode.WRONG and not said.err:
        return "problem" in said.out or "error" in said.out
    told = said.err.count("error: ")
    foreign = [word for word in ("Traceback", "report it", "panicked", "\tat ") if word in said.err]
    return said.code in (ExitCode.WRONG, ExitCode.RETRY) and told == 1 and not foreign and len(said.err) < 800


def _commands(command: Any, *words: str) -> Iterator[str]:
    """All that can be typed."""
    below = getattr(command, "commands", None)
    if below is None:
        yield " ".join(words)
        return
    for name, each in below.items():
        yield from _commands(each, *words, name)


def test_no_command_is_left_out() -> None:
    names = set(_commands(get_command(app)))
    tried = {name for name in names if any(f"{typed} ".startswith(f"{name} ") for typed in COMMANDS.values())}
    assert names - tried == ELSEWHERE


def no_spark(_: Any) -> Any:
    raise EngineError("there is no Spark here")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount, and become somebody else")
@pytest.mark.parametrize("condition", shortened(CONDITIONS, SHORT))
def test_every_command_says_in_one_message_what_the_storage_refuses(
    condition: str, made: Path, disk: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)
    given = disk / "input"
    given.write_text('{"ts":"2026-01-01T10:00:07Z"}\n')
    paths = {"INPUT": str(given), "NEW": str(disk / "new")}
    found: dict[str, Said] = {}
    shutil.copytree(made, disk / "project")
    mill = Mill(Project.load(disk / "project"), NO_SPARK, "sums")
    with ExitStack() as stack:
        CONDITIONS[condition](mill, stack)
        for name, text in COMMANDS.items():
            words = [paths.get(word, word) for word in text.split()]
            session = no_spark if name == "verify" else (lambda _: NO_SPARK)
            found[name] = type_command(mill.project.folder, *words, session=session)
    assert {name: found[name].code for name in ENDS.get(condition, {})} == ENDS.get(condition, {})
    assert [f"{n}: {said.code}: {said.err}" for n, said in found.items() if not _is_clear(said)] == []
