"""Tasks that decide, rewind and rebuild, on real ledgers and tables, without Spark and without a scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugins.form_tasks import NOTES, again, executed, tiny  # noqa: F401  a fixture
from support.projects import NO_SPARK, Mill, an_event, sums
from tidemill.core.errors import AuditBlocked
from tidemill.core.protocol.events import Decided, Decision
from tidemill.run.batch import NothingToDo

pytestmark = pytest.mark.airflow

AT_MOST = """
    quality:
      - {type: library, metric: rowCount, mustBeLessThan: 2, severity: error}
"""
YES = {"by": "ana", "why": "it is right"}


@pytest.fixture
def mill(tmp_path: Path) -> Mill:
    """Batch 1 is published."""
    made = sums(tmp_path, NO_SPARK, output=lambda text: text.rstrip() + AT_MOST)
    made.feed([an_event(1), an_event(15)])
    made.run()
    return made


@pytest.fixture
def blocked(mill: Mill) -> Mill:
    """Batch 2 is blocked: it would publish two rows."""
    mill.feed([an_event(16, "b"), an_event(30)])
    with pytest.raises(AuditBlocked):
        mill.run()
    return mill


def decision(mill: Mill, form: dict[str, Any], **more: Any) -> Any:
    from tidemill_airflow.tasks.deciding import DecisionOperator

    return executed(mill, DecisionOperator, form, **more)


def decided(mill: Mill) -> list[Decided]:
    return [e.event for e in again(mill).project.ledger("sums").entries() if isinstance(e.event, Decided)]


def test_show_says_what_is_blocked_by_what_and_decides_nothing(blocked: Mill) -> None:
    told = decision(blocked, {"decision": "show"})["text"]
    assert "batch 2 read 2 records: events-0 [2, 4)" in told
    assert "broken    error sums: rowCount: 2 rows" in told
    assert "batch 2 waits for a decision:" in told
    assert "divert  send all of its records to quarantine" in told
    assert NOTES[-1] == "WAITING: batch 2 read 2 records: events-0 [2, 4)"
    assert decided(blocked) == []


def test_an_accepted_batch_is_published_by_the_next_run(blocked: Mill) -> None:
    done = decision(blocked, {"decision": "accept", "batch": 2, **YES})
    assert "batch 2: accept is recorded, by ana: it is right; the next run of the pipeline does it" in done["text"]
    assert NOTES[-1].startswith("DECIDED: batch 2: accept is recorded, by ana: it is right")
    assert again(blocked).run().batch_id == 2
    [found] = decided(blocked)
    assert (found.decision, found.by, found.why) == (Decision.ACCEPT, "ana", "it is right")


def test_a_decision_never_lands_on_another_batch(blocked: Mill) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="blocks batch 2, and the decision is about batch 1; nothing was"):
        decision(blocked, {"decision": "accept", "batch": 1, **YES})
    decision(blocked, {"decision": "accept", "batch": 2, **YES})
    with pytest.raises(AirflowFailException, match="accept is recorded about batch 2 already, by ana: it is right"):
        decision(blocked, {"decision": "divert", "batch": 2, **YES})
    assert [found.decision for found in decided(blocked)] == [Decision.ACCEPT]


def test_a_retry_of_a_task_that_recorded_its_decision_and_died_succeeds(blocked: Mill) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    form = {"decision": "accept", "batch": 2, **YES}
    decision(blocked, form)
    assert "accept is recorded" in decision(blocked, form, tries=2)["text"]
    with pytest.raises(AirflowFailException):
        decision(blocked, {**form, "decision": "divert"}, tries=2)
    assert len(decided(blocked)) == 1


def test_nothing_is_decided_without_a_name_or_a_reason(blocked: Mill) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    for lacks, says in (("by", "does not say who triggered"), ("why", "needs a reason")):
        with pytest.raises(AirflowFailException, match=says):
            decision(blocked, {"decision": "accept", "batch": 2, **YES, lacks: ""})
    assert decided(blocked) == []


def test_the_answer_of_people_goes_before_the_form(blocked: Mill) -> None:
    answer = {"decision": "divert", "batch": 2, "why": "rubbish", "by": "ben"}
    decision(blocked, {"decision": "ask", "by": None, "why": None}, answer_of_people=answer)
    assert [(found.decision, found.by) for found in decided(blocked)] == [(Decision.DIVERT, "ben")]


def test_a_blocked_pipeline_fails_in_every_run_until_somebody_decides(blocked: Mill) -> None:
    """Whatever somebody marks or deletes in Airflow: the ledger is what blocks."""
    for _ in range(3):
        with pytest.raises(AuditBlocked, match="batch 2 is blocked by its audit"):
            again(blocked).run()
    decision(blocked, {"decision": "accept", "batch": 2, **YES})
    assert again(blocked).run().batch_id == 2


def test_nothing_waits_for_a_pipeline_that_runs(mill: Mill) -> None:
    assert decision(mill, {"decision": "show"})["text"] == "nothing waits for a decision"


def test_a_new_meaning_holds_from_the_next_batch_on(mill: Mill) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="did not change what numbers mean"):
        decision(mill, {"decision": "from now", **YES})
    file = mill.project.folder / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace("!= 'nobody'", "not in ('nobody', 'b')"))
    mill.feed([an_event(16, "b")])
    assert "changed what published numbers mean" in decision(mill, {"decision": "show"})["text"]
    done = decision(mill, {"decision": "from now", **YES})
    assert [b["batch_id"] for b in done["batches"]] == [2]
    [since] = (again(mill).project.ledger("sums").view().position.since or {}).values()
    assert (since.by, since.why) == ("ana", "it is right")
    assert [b["batch_id"] for b in decision(mill, {"decision": "from now", **YES}, tries=2)["batches"]] == [2]
    assert NOTES[-1] == "DECIDED: from now, by ana: it is right; it holds from batch 2"


def test_batches_go_on_without_partitions_that_are_declared_gone(tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from machine.decisions import hide

    mill = sums(tmp_path, NO_SPARK, partitions=2)
    mill.feed([an_event(1)])
    mill.feed([an_event(2)], partition=1)
    mill.run()
    hide(mill)
    assert "missing in the log, though they were read before: events-1" in decision(mill, {})["text"]
    with pytest.raises(AirflowFailException, match="events-0 is not gone"):
        decision(mill, {"decision": "gone", "partitions": "events-0", **YES})
    done = decision(mill, {"decision": "gone", "partitions": "events-1", **YES})
    assert [b["batch_id"] for b in done["batches"]] == [2]


def test_a_rewind_is_planned_and_done_once(mill: Mill) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tidemill_airflow.tasks.rewinding import RewindOperator

    mill.feed([an_event(30)])
    mill.run()
    listed = executed(mill, RewindOperator, {"mode": "plan only"})["text"]
    assert listed.index("batch 2, live") < listed.index("batch 1, live")
    planned = executed(mill, RewindOperator, {"mode": "plan only", "to": 1})["text"]
    assert "taken back    batch 2" in planned
    assert "read again    events-0 [2, 3)" in planned
    assert "nothing was done" in planned
    assert NOTES[-1] == "PLAN: taken back batch 2"
    with pytest.raises(AirflowFailException, match="needs the batch to return to"):
        executed(mill, RewindOperator, {"mode": "do it", **YES})
    for tries in (1, 2):
        done = executed(mill, RewindOperator, {"mode": "do it", "to": 1, **YES}, tries=tries)
        assert [b["batch_id"] for b in done["batches"]] == [3]
        assert NOTES[-1].startswith("batch 3 (rewind): ")
    with pytest.raises(AirflowFailException, match="batch 99 has not committed"):
        executed(mill, RewindOperator, {"mode": "plan only", "to": 99})


def test_a_rebuild_is_planned_done_once_and_dropped(mill: Mill) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tidemill_airflow.tasks.rewinding import RebuildOperator

    planned = executed(mill, RebuildOperator, {"mode": "plan only"})["text"]
    assert "builds    sums again, beside generation 1, which stays until the switch" in planned
    assert "reads     2 offsets: events-0 [0, 2)" in planned
    with pytest.raises(AirflowFailException, match="no rebuild has begun"):
        executed(mill, RebuildOperator, {"mode": "cancel", **YES})
    assert NOTES[-1].startswith("FAILED: sums: no rebuild has begun")
    for tries in (1, 2):
        done = executed(mill, RebuildOperator, {"mode": "do it", **YES}, tries=tries)
        assert len(done["batches"]) == 1
        assert again(mill).project.generations.current("sums") == 2
    mill = again(mill)
    mill.feed([an_event(40)])
    assert not isinstance(mill.run(), NothingToDo)


def test_a_blocked_rebuild_is_decided_about_in_the_same_form(mill: Mill) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tidemill_airflow.tasks.rewinding import RebuildOperator

    mill.feed([an_event(31, "b")])
    mill.run()
    with pytest.raises(AirflowFailException, match="blocked by its audit"):
        executed(mill, RebuildOperator, {"mode": "do it", **YES})
    assert "a rebuild, generation 2, waits:" in decision(mill, {})["text"]
    said = decision(mill, {"decision": "accept", "batch": 1, **YES})["text"]
    assert "sums.rebuild goes on with generation 2" in said
    assert len(executed(mill, RebuildOperator, {"mode": "do it", **YES})["batches"]) == 1
