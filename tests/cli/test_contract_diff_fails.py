"""On which changes, waivers and versions `tidemill contract diff` fails: `--fail-on`."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from cli.conftest import Type
from cli.test_contract_diff import NEW, change, commit, folder
from cli.test_contract_waivers import ENDED, LAST, a_waiver

__all__ = ["folder"]

DIFF = ("contract", "diff", "--base", "HEAD")


@pytest.fixture
def grown(folder: Path) -> Path:
    """The contracts, of which that of records got an optional field: that breaks state and nothing else."""
    change(
        folder / "events.odcs.yaml",
        ("    properties:\n", "    properties:\n      - {name: more, logicalType: string}\n"),
    )
    return folder


@pytest.mark.parametrize(
    ("words", "code", "level"),
    [
        ("error", 1, "breaking"),
        ("readers,writers", 0, "warning"),
        ("readers, writers, backfills", 0, "warning"),
        ("state", 1, "breaking"),
        ("error,readers", 1, "breaking"),
        ("readers,warning", 1, "warning"),
    ],
)
def test_a_team_chooses_what_must_not_break(tidemill: Type, grown: Path, words: str, code: int, level: str) -> None:
    said = tidemill(*DIFF, "--fail-on", words)
    assert (said.code, f": {level}: events: `more`: a field that may be null is new" in said.out) == (code, True)
    assert "  breaks: state" in said.out
    counts = "1 breaking" if level == "breaking" else "0 breaking, 1 warned"
    assert said.out.splitlines()[-1] == f"1 change, {counts}"


def test_what_only_warns_is_told_in_every_format(tidemill: Type, grown: Path) -> None:
    words = (*DIFF, "--fail-on", "readers,writers")
    found = next(json.loads(line) for line in tidemill(*words, "--json").out.splitlines())
    assert (found["breaks"], found["severity"]) == (["state"], "warning")
    assert "::warning file=" in tidemill(*words, "--format", "github").out
    change(grown / "events.odcs.yaml", ("version: 1.0.0", "version: 1.1.0"))
    assert tidemill(*words, "--format", "sarif").out.count('"level": "warning"') == 1
    junit = tidemill(*DIFF, "--fail-on", "readers,warning", "--format", "junit")
    assert (junit.code, 'failures="0"' in junit.out) == (0, True)


def test_other_breaks_still_fail(tidemill: Type, folder: Path) -> None:
    change(folder / "sums.odcs.yaml", NEW)
    assert tidemill(*DIFF, "--fail-on", "writers").code == 0
    assert tidemill(*DIFF, "--fail-on", "writers,readers").code == 1


@pytest.mark.parametrize(
    ("words", "told"), [("reader", "did you mean `readers`?"), ("", "a list of error, warning"), ("error,", "such as")]
)
def test_other_words_are_refused(tidemill: Type, folder: Path, words: str, told: str) -> None:
    said = tidemill(*DIFF, "--fail-on", words)
    assert (said.code, "is nothing to fail on" in said.err, told in said.err) == (5, True, True)


@pytest.mark.parametrize("until", [LAST, ENDED])
@pytest.mark.parametrize("place", [(), ("data_contracts/sums.odcs.yaml",)])
def test_a_waiver_whose_change_has_arrived_never_fails(
    tidemill: Type, folder: Path, monkeypatch: pytest.MonkeyPatch, until: object, place: tuple[str, ...]
) -> None:
    monkeypatch.chdir(folder.parent)
    change(folder / "sums.odcs.yaml", NEW)
    (folder / "waivers.yaml").write_text(a_waiver(LAST + timedelta(days=9)))
    commit(folder, "Agree on it")
    # Also where somebody else gives it another day, or adds another waiver above it.
    (folder / "waivers.yaml").write_text(a_waiver(until))  # type: ignore[arg-type]
    said = tidemill(*DIFF, *place, "--fail-on", "warning")
    assert (said.code, said.out.splitlines()[-1]) == (0, "0 changes, 0 breaking")
    assert "waivers.yaml:2: warning: no breaking change is type-changed in sums: the waiver allows nothing" in said.out
    junit = tidemill(*DIFF, *place, "--fail-on", "warning", "--format", "junit")
    assert (junit.code, 'failures="0"' in junit.out) == (0, True)


def test_a_waiver_that_has_ended_warns_where_its_change_does(tidemill: Type, folder: Path) -> None:
    change(folder / "sums.odcs.yaml", NEW)
    (folder / "waivers.yaml").write_text(a_waiver(ENDED))
    said = tidemill(*DIFF, "--fail-on", "writers")
    assert (said.code, "waivers.yaml:2: warning: the waiver of type-changed in sums ended on" in said.out) == (0, True)
    assert tidemill(*DIFF, "--fail-on", "readers").out.count(": error: the waiver of") == 1
