"""Waivers of changes that break something: who allowed what, and until when."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from cli.conftest import Type
from machine.tiny import TinyAttempt
from support.projects import Mill, an_event
from tidemill.run import batch

LAST = datetime.now(UTC).date() + timedelta(days=1)
"""The last day of a waiver: not today, as a run of tests may go on after midnight."""

ENDED = LAST - timedelta(days=2)


@pytest.fixture
def folder(mill: Mill) -> Path:
    """The project's contracts in a repository of git; a type was changed since."""
    for words in (
        ["init", "--quiet"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "-m", "contracts"],
    ):
        subprocess.run(["git", *words], cwd=mill.project.folder, check=True)
    found = mill.project.folder / "data_contracts"
    file = found / "sums.odcs.yaml"
    old, new = ("amount, logicalType: integer", "amount, logicalType: string")
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new).replace("version: 1.0.0", "version: 2.0.0"))
    return found


def a_waiver(until: date = LAST, **more: str) -> str:
    values = {
        "contract": "sums",
        "change": "type-changed",
        "reason": "readers moved",
        "owner": "data-team",
        "until": str(until),
        **more,
    }
    return "waivers:\n  - " + "\n    ".join(f"{key}: {value}" for key, value in values.items() if value) + "\n"


def test_a_waived_change_is_listed_and_does_not_fail(tidemill: Type, folder: Path) -> None:
    assert tidemill("contract", "diff", "--base", "HEAD").code == 1
    (folder / "waivers.yaml").write_text(a_waiver(field="amount"))
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert said.code == 0
    assert ": waived: sums: `amount`: a type is another one" in said.out
    assert f"  waived until {LAST} by data-team: readers moved" in said.out
    assert said.out.endswith("1 change, 0 breaking, 1 waived\n")
    found = json.loads(tidemill("contract", "diff", "--base", "HEAD", "--json").out)
    assert found["waived"] == {"until": str(LAST), "owner": "data-team", "reason": "readers moved"}
    assert "::notice file=" in tidemill("contract", "diff", "--base", "HEAD", "--format", "github").out
    assert "2 contracts, no errors" in tidemill("contract", "lint").out


def test_a_waiver_that_has_ended_fails_by_name(tidemill: Type, folder: Path) -> None:
    (folder / "waivers.yaml").write_text(a_waiver(ENDED))
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert (said.code, "1 breaking" in said.out) == (1, True)
    assert f"waivers.yaml:2: error: the waiver of type-changed in sums ended on {ENDED}; it was data-team's" in said.out
    # When nothing is left to waive, nobody is stopped by it.
    subprocess.run(["git", "checkout", "--quiet", "data_contracts/sums.odcs.yaml"], cwd=folder.parent, check=True)
    again = tidemill("contract", "diff", "--base", "HEAD")
    assert (again.code, "waivers.yaml:2: warning: no breaking change is type-changed in sums" in again.out) == (0, True)
    assert "0 changes" in again.out


def test_a_waiver_that_has_ended_fails_only_while_its_change_does(tidemill: Type, folder: Path) -> None:
    """The change breaks readers alone: for writers it is a warning, and so is its waiver."""
    words = ("contract", "diff", "--base", "HEAD", "--fail-on", "writers,warning")
    assert tidemill(*words).code == 0
    (folder / "waivers.yaml").write_text(a_waiver(ENDED))
    said = tidemill(*words)
    assert (said.code, "waivers.yaml:2: warning: the waiver of type-changed in sums ended on" in said.out) == (0, True)
    assert tidemill("contract", "diff", "--base", "HEAD", "--fail-on", "readers,warning").code == 1


def test_an_empty_file_of_waivers_is_told_what_it_is(tidemill: Type, folder: Path) -> None:
    (folder / "waivers.yaml").write_text("# none\n")
    said = tidemill("contract", "lint")
    assert "fix: a file of waivers lists changes of contracts that somebody allows up to a day" in said.out
    assert "contract of the guide" not in said.out


def test_waivers_of_folders_below_count(tidemill: Type, folder: Path) -> None:
    (folder / "teams").mkdir()
    (folder / "teams" / "waivers.yaml").write_text(a_waiver())
    assert tidemill("contract", "diff", "--base", "HEAD").code == 0
    (folder / "teams" / "waivers.yaml").write_text(a_waiver(ENDED))
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert (said.code, "teams/waivers.yaml:2: error: the waiver of" in said.out) == (1, True)


@pytest.mark.parametrize(
    ("text", "said", "code"), [(a_waiver(ENDED), "ended on", 0), (a_waiver(untl="2026"), "has no `untl`", 5)]
)
def test_lint_looks_at_waivers(tidemill: Type, folder: Path, text: str, said: str, code: int) -> None:
    (folder / "below").mkdir()
    file = folder / "below" / "waivers.yaml"
    file.write_text(a_waiver())
    assert tidemill("contract", "lint").code == 0
    file.write_text(text)
    found = tidemill("contract", "lint")
    assert (found.code, f"{file}:" in found.out, said in found.out) == (code, True, True)


@pytest.mark.parametrize(
    "other", [{"contract": "events"}, {"change": "field-removed"}, {"field": "n"}, {"rule": "amount.minimum"}]
)
def test_a_waiver_allows_only_what_it_names(tidemill: Type, folder: Path, other: dict[str, str]) -> None:
    (folder / "waivers.yaml").write_text(a_waiver(**other))
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert (said.code, "the waiver allows nothing" in said.out) == (1, True)
    (folder / "sums.odcs.yaml").unlink()
    subprocess.run(["git", "checkout", "--quiet", "data_contracts/sums.odcs.yaml"], cwd=folder.parent, check=True)
    assert tidemill("contract", "diff", "--base", "HEAD").code == 0
    assert tidemill("contract", "diff", "--base", "HEAD", "--fail-on", "warning").code == 1


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (a_waiver(reason=""), 2, "a waiver needs `reason`"),
        (a_waiver(owner="' '"), 5, "`owner`: expected text"),
        (a_waiver(change="type-chnged"), 3, "no change is called `type-chnged`"),
        (a_waiver().replace(str(LAST), "next week"), 6, "`until`: expected a day, found the text 'next week'"),
        (a_waiver().replace(str(LAST), "2026-13-01"), 6, "`until`: expected a day"),
        (a_waiver(untl="2026-01-01"), 7, "a waiver has no `untl`"),
        (a_waiver() + "waiver: []\n", 7, "a file of waivers has no `waiver`"),
        ("waivers: sums\n", 1, "expected `waivers:` and a list"),
        ("- a\n", 1, "expected a file of waivers"),
        ("waivers: [a]\n", 1, "expected a waiver, found the text 'a'"),
        ("waivers:\n\t- a\n", 2, "not YAML"),
        ("", 1, "the document is empty"),
    ],
)
def test_a_wrong_file_of_waivers_is_refused_with_its_line(
    tidemill: Type, folder: Path, text: str, line: int, said: str
) -> None:
    (folder / "waivers.yaml").write_text(text)
    found = tidemill("contract", "diff", "--base", "HEAD")
    assert found.code == 2
    assert f"waivers.yaml:{line}: " in found.err
    assert said in found.err


def test_waivers_under_another_name_are_not_passed_over(tidemill: Type, folder: Path) -> None:
    (folder / "waivers.yml").write_text("waivers: []\n")
    assert "waivers are read from waivers.yaml alone" in tidemill("contract", "diff", "--base", "HEAD").err
    assert "waivers.yml:1" in tidemill("contract", "lint").out


def test_a_file_of_waivers_without_waivers_is_fine(tidemill: Type, folder: Path) -> None:
    (folder / "waivers.yaml").write_text("waivers: []\n")
    assert tidemill("contract", "diff", "--base", "HEAD").code == 1


def test_a_breaking_change_says_which_pipelines_it_meets(
    tidemill: Type, folder: Path, mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert "  pipeline sums publishes table sums: nothing committed yet" in said.out
    subprocess.run(["git", "stash", "--quiet"], cwd=folder.parent, check=True)
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)
    mill.feed([an_event(1), an_event(20)])
    mill.run()
    subprocess.run(["git", "stash", "pop", "--quiet"], cwd=folder.parent, check=True)
    events = folder / "events.odcs.yaml"
    events.write_text(
        events.read_text().replace("{name: user, logicalType: string}", "{name: user, logicalType: date}")
    )
    out = tidemill("contract", "diff", "--base", "HEAD").out
    assert "  pipeline sums reads events: its state and tables are those of 1 committed batch" in out
    assert "; columns amount, ts, user; state of sums in " in out
    assert "  pipeline sums publishes table sums: its state and tables are those of 1 committed batch; table " in out
    said = tidemill("contract", "diff", "--base", "HEAD", "--json").lines
    [reads] = next(change["pipelines"] for change in said if change.get("contract") == "events")
    assert (reads["topics"], reads["columns"], reads["batches"]) == ("events", ["amount", "ts", "user"], 1)
    [state] = reads["state"]
    assert (state["table"], state["rows"], state["path"].endswith("state/sums")) == ("sums", 2, True)
    [publishes] = next(change["pipelines"] for change in said if change.get("contract") == "sums")
    assert publishes["published"] == {
        "table": "sums",
        "path": mill.project.published_uri("sums"),
        "version": 1,
        "rows": 1,
    }


def test_contracts_of_standard_input_meet_pipelines_too(tidemill: Type, folder: Path) -> None:
    new = (folder / "sums.odcs.yaml").read_bytes()
    subprocess.run(["git", "stash", "--quiet"], cwd=folder.parent, check=True)
    said = tidemill("contract", "diff", folder / "sums.odcs.yaml", "-", given=new)
    assert (said.code, "pipeline sums publishes table sums: nothing committed yet" in said.out) == (1, True)
    assert "-:" in said.out


def test_pipelines_that_cannot_be_loaded_are_named(tidemill: Type, folder: Path) -> None:
    (folder.parent / "pipelines" / "broken.py").write_text("1 / 0")
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert (said.code, "information: it is not known which contracts it uses: " in said.out) == (1, True)
    assert "broken.py" in said.out


def test_a_contract_that_is_gone_is_named_by_its_file(tidemill: Type, folder: Path) -> None:
    (folder / "events.odcs.yaml").unlink()
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert f"{folder}/events.odcs.yaml:" in said.out
    assert "tidemill-base-" not in said.out + said.err
