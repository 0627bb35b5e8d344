"""What people see: no noise of libraries, columns that stay apart, limits that are said, nothing secret."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.projects import ROOT, Mill
from support.short_forms import shortened
from tidemill.cli.commands.history import _said
from tidemill.cli.native_noise import meant_for_people
from tidemill.cli.views.batch_lines import batch_lines
from tidemill.core.errors import ConfigError
from tidemill.core.exit_code import ExitCode
from tidemill.core.protocol.events import Decided, Decision
from tidemill.project.project import Project
from tidemill.project.settings import Settings

PANIC = [
    "\n",
    "thread 'tokio-rt-worker' (5860) panicked at src/buffered.rs:369:41:\n",
    "Already shut down\n",
    "stack backtrace:\n",
    "   0: std::panicking\n",
    "note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n",
]
NOISE = [
    *PANIC,
    '{"ts": "2026-01-01", "level": "ERROR", "msg": "[DIVIDE_BY_ZERO]"}\n',
    "\tat org.apache.spark.sql.Dataset.collect(Dataset.scala:1)\n",
    "\t... 12 more\n",
]


def test_panics_traces_and_records_of_machines_are_left_out_and_nothing_else() -> None:
    said = ["error: the disk is full\n", "\n", "  fix: make room\n", "at noon (or so)\n"]
    lines = [said[0], *NOISE, *said[1:], *PANIC]
    assert [line.decode() for line in meant_for_people(line.encode() for line in lines)] == said


PROGRAM = """
import os, sys
from tidemill.cli.native_noise import without_noise
with without_noise():
    os.write(2, NOISE.encode())
    os.write(2, b"a warning\\n")
    print("error: told", file=sys.stderr)
    os.write(1, b"out\\n")
print("after", file=sys.stderr)
os.write(2, b"\\tat end(x)\\n")
"""


def test_only_what_is_meant_for_people_reaches_the_terminal() -> None:
    program = PROGRAM.replace("NOISE", repr("".join(NOISE)))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "out\n"
    assert sorted(done.stderr.splitlines()) == sorted(["error: told", "a warning", "after", "\tat end(x)"])


def test_columns_of_a_run_stay_apart_whatever_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    counts = dict.fromkeys(("read", "aggregated", "filtered", "rejected", "late"), 123_456_789)
    published = {"published": {"a": 123_456_789}}
    facts = {"batch_id": 1_000_000, "kind": "live", "watermark": None, "seconds": 1234.5, "attempt": 1}
    with batch_lines() as lines:
        lines.batch({**facts, **counts, **published})
    assert capsys.readouterr().out.split().count("123,456,789") == 6


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[maintenance]\nkeep = "99999999999 days"\n', "[maintenance] keep: a duration is at most 365,000 days"),
        (f'[maintenance]\nkeep = "{"9" * 5000} days"\n', "[maintenance] keep: a duration is at most"),
        ('[project]\nload_timeout = "0 s"\n', "[project] load_timeout: expected at least 1 s, found 0 s"),
        ("[limits]\nbatch_records = 0\n", "[limits] batch_records: expected 1 to"),
        ("[limits]\npartition_records = -1\n", "[limits] partition_records: expected 1 to"),
        (f"[limits]\ndriver_rows = {10**30}\n", "[limits] driver_rows: expected 1 to"),
        ("[spark]\ncores = 0\n", "[spark] cores: expected 1 to 1,024, found 0"),
        ("[spark]\ncores = 99999999\n", "[spark] cores: expected 1 to 1,024"),
        (f"x = {'[' * 20_000}", "tidemill.toml: lists or tables are nested too deeply"),
        ('[lake]\npath = "a%20b"\n', "has a % before two digits"),
        ('[lake]\npath = "s3://bucket/a%2Fb"\n', "has a % before two digits"),
    ],
)
def test_a_setting_beyond_its_bounds_is_refused_by_every_command(
    tidemill,
    mill: Mill,
    text: str,
    told: str,  # type: ignore[no-untyped-def]
) -> None:
    (mill.project.folder / "tidemill.toml").write_text(text)
    for command in (("status",), ("maintain",), ("run", "sums")):
        said = tidemill(*command)
        assert said.code == ExitCode.WRONG
        assert told in said.err
        assert len(said.err) < 600


@pytest.mark.parametrize("section", ["[lake]\npath", "[log]\npath", "[project]\npipelines", "[project]\ncontracts"])
def test_a_path_with_a_null_byte_is_named(tidemill, mill: Mill, section: str) -> None:  # type: ignore[no-untyped-def]
    (mill.project.folder / "tidemill.toml").write_text(f'{section} = "a\\u0000b"\n')
    said = tidemill("status")
    assert (said.code, "a path cannot hold the character U+0000" in said.err) == (ExitCode.WRONG, True), said.err


def test_the_largest_settings_work(tidemill, mill: Mill) -> None:  # type: ignore[no-untyped-def]
    toml = mill.project.folder / "tidemill.toml"
    toml.write_text(toml.read_text() + '[maintenance]\nkeep = "365000 days"\n')
    assert tidemill("maintain").code == ExitCode.DONE
    said = tidemill("maintain", "--keep", "365001 days")
    assert said.code == ExitCode.WRONG
    assert "at most 365,000 days" in said.err


def test_a_percent_sign_that_begins_no_escape_is_a_folder_as_any(tmp_path: Path) -> None:
    (tmp_path / "50%").mkdir()
    (tmp_path / "50%" / "tidemill.toml").write_text("")
    assert Project.load(tmp_path / "50%").settings.lake == str(tmp_path / "50%" / "lake")
    (tmp_path / "a%20b").mkdir()
    (tmp_path / "a%20b" / "tidemill.toml").write_text("")
    with pytest.raises(ConfigError, match="has a % before two digits"):
        Project.load(tmp_path / "a%20b")


def test_settings_do_not_show_what_spark_is_configured_with() -> None:
    settings = Settings(
        lake="", log="", pipelines="", contracts="", jars="", spark_conf={"spark.hadoop.fs.s3a.secret.key": "hush"}
    )
    assert "hush" not in repr(settings)


def test_what_java_says_is_kept_off_the_terminal_where_its_log_cannot_be_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from tidemill.cli.spark import errors_into

    (tmp_path / "file").write_text("")
    with errors_into(tmp_path / "file" / "spark.log"):
        os.write(2, b"26/01/01 WARN of Java\n")
    os.write(2, b"seen\n")
    assert capfd.readouterr().err == "seen\n"


@pytest.mark.parametrize("encoding", shortened(["ascii", "latin-1", "utf-8"], ["latin-1"]))
def test_a_terminal_without_some_characters_shows_their_numbers(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "tidemill.toml").write_text("")
    name = "ö…"
    done = by_hand(["--project", str(tmp_path), "log", "cat", name], PYTHONIOENCODING=encoding)
    assert done.returncode == 5
    shown = name.encode(encoding, errors="backslashreplace")
    assert shown in done.stderr
    assert b"Traceback" not in done.stderr


def test_standard_input_that_is_closed_is_named(tmp_path: Path) -> None:
    (tmp_path / "tidemill.toml").write_text("")
    assert by_hand(["--project", str(tmp_path), "log", "create", "t"]).returncode == 0
    done = by_hand(["--project", str(tmp_path), "log", "append", "t", "-"], closed=True)
    assert done.returncode == 5
    assert b"it is closed" in done.stderr


def by_hand(words: list[str], *, closed: bool = False, **environ: str) -> subprocess.CompletedProcess[bytes]:
    command = shlex.join([sys.executable, "-m", "tidemill.cli.main", *words]) + (" <&-" if closed else "")
    known = {**os.environ, "PYTHONPATH": str(ROOT / "spark_jobs"), **environ}
    return subprocess.run(["sh", "-c", command], env=known, capture_output=True, check=False, timeout=60)


def test_a_history_escapes_who_decided_and_why() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    event = Decided(batch_id=2, attempt=1, decision=Decision.ACCEPT, by="ana\x1b", why="it is \u202ethgir", at=at)
    assert _said(event) == r"accept by ana\x1b: it is \u202ethgir"
