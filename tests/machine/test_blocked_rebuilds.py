"""A rebuild that its audit blocks: people see it, decide about it, or drop it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from machine.conftest import again, an_amendment, ids
from support.commands import Said, type_command
from support.projects import Mill, an_event
from tidemill.core.errors import AmendmentError, AuditBlocked, Busy
from tidemill.core.exit_code import ExitCode
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol import failpoints
from tidemill.repair.rebuild import rebuild
from tidemill.repair.unfinished import cancel, unfinished

Make = Callable[..., Mill]

AT_MOST = """
    quality:
      - {type: library, metric: rowCount, mustBeLessThan: 2, severity: error}
"""


@pytest.fixture
def mill(a_mill: Make) -> Mill:
    """A batch published two rows; the contract now allows one, so a rebuild is blocked."""
    made = a_mill()
    made.feed([an_event(1), an_event(15), an_event(30)])
    made.run()
    path = made.project.folder / "data_contracts" / "sums.odcs.yaml"
    path.write_text(path.read_text().rstrip() + AT_MOST)
    with pytest.raises(AuditBlocked) as error:
        ids(rebuild(an_amendment(made)))
    assert "tidemill rebuild sums --cancel" in error.value.fix
    return again(made)


def typed(mill: Mill, *words: str) -> Said:
    return type_command(mill.project.folder, *words)


def loosen(mill: Mill) -> None:
    path = mill.project.folder / "data_contracts" / "sums.odcs.yaml"
    path.write_text(path.read_text().replace("mustBeLessThan: 2", "mustBeLessThan: 9"))


def test_status_shows_a_blocked_rebuild_and_what_to_do(mill: Mill) -> None:
    told = typed(mill, "status", "sums").out
    assert "generation 2: batch 1 is blocked by its audit" in told
    assert "tidemill audit show sums" in told
    assert "--cancel" in told
    assert "a rebuild is blocked by its audit" in typed(mill, "status").out
    shown = typed(mill, "status", "sums", "--json").json["rebuild"]
    assert (shown["generation"], shown["outdated"], shown["open_batch"]["blocked"]) == (2, False, True)


def test_a_decision_about_a_rebuild_names_the_command_that_obeys_it(mill: Mill) -> None:
    assert "rowCount" in typed(mill, "audit", "show", "sums").out
    said = typed(mill, "audit", "accept", "sums", "--why", "it is right")
    assert "batch 1 of generation 2: accept is recorded; `tidemill rebuild sums` does it" in said.out
    ids(rebuild(an_amendment(mill)))
    assert again(mill).project.generations.current("sums") == 2
    assert typed(mill, "status", "sums", "--json").json["rebuild"] is None


def test_after_a_correction_the_audit_says_that_the_next_rebuild_begins_another(mill: Mill) -> None:
    loosen(mill)
    for words in (("show", "sums"), ("divert", "sums", "--why", "x"), ("retry", "sums")):
        said = typed(mill, "audit", *words)
        assert said.code == ExitCode.WRONG
        assert "the rebuild of generation 2" in said.err
        assert "`tidemill rebuild sums` builds another generation" in said.err
    assert "begins another one" in typed(mill, "status", "sums").out
    ids(rebuild(an_amendment(mill)))
    assert again(mill).project.generations.current("sums") == 3


def test_a_dropped_rebuild_is_gone_and_readers_see_what_they_saw(mill: Mill) -> None:
    before = mill.published()
    said = typed(mill, "rebuild", "sums", "--cancel", "--why", "not now")
    assert (said.code, "generation 2" in said.out) == (0, True)
    assert typed(mill, "status", "sums", "--json").json["rebuild"] is None
    assert "no batch waits" in typed(mill, "audit", "show", "sums").err
    assert mill.published() == before
    again_said = typed(mill, "rebuild", "sums", "--cancel")
    assert (again_said.code, "no rebuild has begun" in again_said.err) == (ExitCode.WRONG, True)
    loosen(mill)
    ids(rebuild(an_amendment(mill)))
    assert again(mill).project.generations.current("sums") == 3
    assert mill.published() == before


@pytest.mark.parametrize("way", ["before:superseded=raise", "after:superseded=raise"])
def test_a_rebuild_is_dropped_only_before_it_takes_over(mill: Mill, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    loosen(mill)
    with monkeypatch.context() as patch:
        patch.setenv(failpoints.VARIABLE, way)
        with pytest.raises(failpoints.Injected):
            ids(rebuild(an_amendment(mill)))
    if way.startswith("before"):
        assert "generation 3: 1 batches committed" in typed(mill, "status", "sums").out
        assert cancel(an_amendment(mill)) == [2, 3]
        return
    with pytest.raises(AmendmentError, match="generation 3 is taking over"):
        cancel(an_amendment(mill))
    ids(rebuild(an_amendment(mill)))
    assert again(mill).project.generations.current("sums") == 3


@pytest.mark.parametrize("way", ["before:dropped=raise", "after:dropped=raise"])
def test_dropping_that_dies_goes_on(mill: Mill, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(failpoints.VARIABLE, way)
        with pytest.raises(failpoints.Injected):
            cancel(an_amendment(mill))
    if way.startswith("before"):
        assert cancel(an_amendment(mill)) == [2]
    assert unfinished(again(mill).project, "sums") is None


def test_a_rebuild_that_somebody_executes_is_not_dropped(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    loosen(mill)
    refusals = []

    def somebody_cancels(side: str, name: str, _: int) -> None:
        if (side, name) == ("before", "audited") and not refusals:
            job = an_amendment(mill)
            job.identity = "another"
            with pytest.raises(Busy) as refused:
                cancel(job)
            refusals.append(refused.value)

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "_reach", somebody_cancels)
        ids(rebuild(an_amendment(mill)))
    assert refusals
    assert again(mill).project.generations.current("sums") == 3


def test_a_rebuild_that_was_dropped_while_it_ran_does_not_take_over(mill: Mill) -> None:
    loosen(mill)
    batches = rebuild(an_amendment(mill))
    next(batches)
    cancel(an_amendment(mill))
    with pytest.raises(AmendmentError, match="somebody dropped this rebuild"):
        ids(batches)
    assert again(mill).project.generations.current("sums") == 1


def test_the_history_tells_of_generations_before_a_rebuild_and_why_it_was_made(mill: Mill) -> None:
    loosen(mill)
    job = an_amendment(mill)
    job.reason = Reason(by="ann", why="looser")
    ids(rebuild(job))
    told = " ".join(typed(mill, "history", "sums").out.split())
    assert "switch to generation 3 by ann: looser" in told
    assert "this is generation 3; --all shows earlier ones, too" in told
    told = " ".join(typed(mill, "history", "sums", "--all").out.split())
    assert "generation 1 " in told
    assert "by generation 3, of ann: looser" in told
    assert "generation 3, which is published" in told
    events = typed(mill, "history", "sums", "--all", "--json").lines
    assert sorted({e["generation"] for e in events}) == [1, 2, 3]
    assert [e["event"] for e in events if e["generation"] == 1][-1] == "superseded"
    assert {e["generation"] for e in typed(mill, "history", "sums", "--json").lines} == {3}
    assert "made by a rebuild" in typed(mill, "status", "sums").out
    assert typed(mill, "status", "sums", "--json").json["generation"] == 3
