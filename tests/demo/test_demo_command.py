"""`tidemill demo`: from an empty folder to the proof, with a kill on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from support.commands import type_command
from support.projects import ROOT, rows_of
from tidemill.core.exit_code import ExitCode
from tidemill.core.protocol.account import Account
from tidemill.demo.proof import Proof
from tidemill.demo.site import TABLE, make_site, source_of
from tidemill.demo.story import KILL, Ending, Script
from tidemill.demo.traffic import Kind
from tidemill.project.project import Project

KEYS = "batches killed_at read aggregated filtered rejected late shed lost doubled seconds"


def demo(folder: Path, *options: str) -> tuple[subprocess.CompletedProcess[str], dict[str, object]]:
    command = [sys.executable, "-m", "tidemill.cli.main", "--project", str(ROOT), "demo", "--folder", "build/demo"]
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.DONE, done.stdout + done.stderr
    return done, json.loads((folder / "build" / "demo.json").read_text())


@pytest.mark.spark
@pytest.mark.long
def test_demo_kills_a_batch_and_proves_that_nothing_was_lost_or_doubled(tmp_path):
    done, figures = demo(tmp_path, "--records", "4000")
    assert " ".join(figures) == KEYS
    assert figures["killed_at"] == f"{KILL}@5"
    assert (figures["lost"], figures["doubled"]) == (0, 0)
    assert figures["batches"] == 10
    ends = [figures[part] for part in ("aggregated", "filtered", "rejected", "late", "shed")]
    assert figures["read"] == sum(ends) == 4000
    assert figures["rejected"] > 1
    assert figures["late"] > 0
    assert "SIGKILL at published:page_views_by_minute" in done.stdout
    assert "attempt 2" in done.stdout
    assert "1  future" in done.stdout
    assert done.stderr == ""
    status = type_command(tmp_path / "build" / "demo", "status", "page_views", "--json").json
    assert (status["lag"], status["batch_id"], status["watermark"]) == (0, 10, "end")


@pytest.mark.spark
@pytest.mark.long
def test_demo_of_a_small_log_kills_the_batch_that_publishes(tmp_path, shared_data, spark):
    log, folder = shared_data / "access_20.log", tmp_path / "demo"
    said = type_command(ROOT, "demo", "--log", log, "--folder", folder, session=lambda _: spark)
    assert said.code == ExitCode.DONE, said.out + said.err
    figures = json.loads((tmp_path / "demo.json").read_text())
    killed = int(figures["killed_at"].removeprefix(f"{KILL}@"))
    history = type_command(folder, "history", "page_views", "--json", "--last", "0").lines
    (commit,) = [e for e in history if e["event"] == "committed" and e["batch_id"] == killed]
    assert commit["published"][TABLE] > 0, "it was killed after it had published rows"
    assert (figures["read"], figures["aggregated"], figures["lost"], figures["doubled"]) == (20, 20, 0, 0)
    assert "/documentation.html" in said.out
    rows = rows_of(Project.load(folder).published_uri(TABLE))
    assert sum(row["bytes"] or 0 for row in rows) == 754_671
    assert {c: sum(row[f"status_{c}"] for row in rows) for c in ("2xx", "3xx", "4xx", "5xx")} == {
        "2xx": 11,
        "3xx": 9,
        "4xx": 0,
        "5xx": 0,
    }
    minutes: Counter[str] = Counter()
    for row in rows:
        minutes[row["window_start"].astimezone(UTC).isoformat()] += row["requests"]
    assert minutes == {f"2014-03-23T22:{minute}:00+00:00": n for minute, n in (("07", 9), ("08", 10), ("09", 1))}


def an_ending(folder: Path, **differences: Any) -> Ending:
    return Ending(
        project=make_site(folder, source_of(str(ROOT))),
        batches=3,
        killed_at=f"{KILL}@2",
        account=Account(read=4, aggregated=3, rejected=1),
        proof=Proof(**{"rows": 2, "lost": 0, "doubled": 0, "different": 0, "examples": (), **differences}),
        reasons={"`a`: expected [b]": 1},
        pages=(("/", 2), ("/[x]", 1)),
        seconds=1.25,
    )


@pytest.fixture
def told(tmp_path, monkeypatch):  # type: ignore[no-untyped-def]
    """Types `tidemill demo` with the end of its story given."""

    def type_demo(*options: str, **differences: object):  # type: ignore[no-untyped-def]
        def tell(script: Script, audience: object, session: object) -> Ending:
            audience.log_written(script.traffic.records, {Kind.BROKEN: 2})
            return an_ending(script.folder, **differences)

        monkeypatch.setattr("tidemill.demo.story.tell", tell)
        return type_command(ROOT, "demo", "--folder", tmp_path / "demo", *options)

    return type_demo


def test_demo_without_differences_is_done(told):
    said = told("--records", "4")
    assert said.code == ExitCode.DONE
    assert "read 4 = aggregated 3 + filtered 0 + rejected 1 + late 0" in said.out
    assert "rows lost    0" in said.out
    assert "rows doubled 0" in said.out
    assert "`a`: expected [b]" in said.out
    assert "/[x]" in said.out
    assert "2  broken" in said.out


@pytest.mark.parametrize("what", ["lost", "doubled", "different"])
def test_demo_with_a_difference_fails_and_shows_it(told, what):
    said = told(**{what: 1, "examples": ("/ at noon: 1 requests are missing",)})
    assert said.code == ExitCode.DIFFERENT
    assert "/ at noon: 1 requests are missing" in said.out


def test_figures_for_programs_have_the_promised_keys(tmp_path):
    figures = an_ending(tmp_path / "demo").as_json()
    assert " ".join(figures) == KEYS
    assert figures["killed_at"] == "published:page_views_by_minute@2"
    assert figures["seconds"] == 1.2


def test_log_that_is_not_there_is_wrong_input(told, tmp_path):
    said = told("--log", str(tmp_path / "none.log"))
    assert said.code == ExitCode.WRONG
    assert "there is no such file" in said.err
