"""Runs of forms that are active at the same time, on a real ledger, without Spark and without a scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugins.form_tasks import NOTES, again, executed, tiny  # noqa: F401  a fixture
from support.projects import NO_SPARK, Mill, an_event, sums
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed

pytestmark = pytest.mark.airflow

ALL = {"mode": "do it", "from_offsets": "events-0:0", "batch_records": 2}


@pytest.fixture
def mill(tmp_path: Path) -> Mill:
    """Four batches of two records."""
    made = sums(tmp_path, NO_SPARK, lateness="1 h")
    made.feed([an_event(10 * i) for i in range(8)])
    for _ in range(4):
        made.run(limit=2)
    return made


def turn(mill: Mill, form: dict[str, Any], run: str, *, batches: int = 1) -> Any:
    """What one turn of a backfill returns; None if it goes on later."""
    from airflow.sdk.exceptions import AirflowRescheduleException

    from tidemill_airflow.tasks.amendments import BackfillOperator

    try:
        return executed(mill, BackfillOperator, form, run=run, batches_a_turn=batches)
    except AirflowRescheduleException:
        return None


def backfilled(mill: Mill) -> list[int]:
    """How many records each batch of a backfill has read."""
    events = [entry.event for entry in again(mill).project.ledger("sums").entries()]
    commits = [e for e in events if isinstance(e, Committed) and e.kind is Kind.BACKFILL]
    return [sum(a.read for a in c.accounts.values()) for c in commits]


def opened(mill: Mill) -> str | None:
    job = again(mill).project.ledger("sums").view().position.backfill
    return None if job is None else job.by.split("/")[1]


def test_two_backfills_and_one_that_completes_the_first_stay_exact(mill: Mill) -> None:
    mill.feed([an_event(75)])
    assert turn(mill, ALL, "first") is None
    published = mill.published()
    assert (turn(mill, ALL, "second"), opened(mill)) == (None, "first")
    assert turn(mill, ALL, "first") is None
    done = turn(mill, {"mode": "resume"}, "third", batches=9)
    assert ([b["kind"] for b in done["batches"]].count("backfill"), opened(mill)) == (1, None)
    while turn(mill, ALL, "second") is None:
        assert opened(mill) in ("second", None)
    assert [b["kind"] for b in turn(mill, ALL, "first")["batches"]].count("backfill") >= 2
    assert mill.published() == published
    assert (sum(backfilled(mill)[:4]), sum(backfilled(mill))) == (8, 17), "the second one reads the live batch, too"


def test_a_backfill_that_waits_says_for_what_and_names_the_modes_of_the_form(mill: Mill) -> None:
    turn(mill, ALL, "first")
    assert NOTES[-1].startswith("WORKS: ")
    assert turn(mill, ALL, "second") is None
    assert NOTES[-1].startswith("WAITS: the backfill of airflow:sums.form/first/it, begun with batch 5, has 4 records")
    assert "trigger sums.backfill with the mode resume to complete it, or cancel" in NOTES[-1]
    assert "--" not in NOTES[-1]


def test_a_backfill_that_was_given_up_beside_its_run_fails_and_begins_no_other(mill: Mill) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    before = mill.published()
    turn(mill, ALL, "first")
    turn(mill, {"mode": "cancel"}, "third")
    with pytest.raises(AirflowFailException, match="begun with batch 5, was given up; nothing of it is seen"):
        turn(mill, ALL, "first")
    assert (opened(mill), mill.published()) == (None, before)


@pytest.mark.parametrize("mode", ["cancel", "resume"])
def test_a_retry_of_a_run_about_the_open_backfill_leaves_the_next_one_alone(mill: Mill, mode: str) -> None:
    turn(mill, ALL, "first")
    turn(mill, {"mode": mode}, "third", batches=9)
    turn(mill, ALL, "second")
    assert opened(mill) == "second"
    assert turn(mill, {"mode": mode}, "third")["batches"]
    assert opened(mill) == "second"


def declare(mill: Mill, old: str, new: str) -> None:
    path = mill.project.folder / "pipelines" / "pipeline.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_filter_that_changes_while_a_backfill_is_open_leaves_two_ways_out(mill: Mill) -> None:
    """Go back to the old declaration and resume, or cancel: both are forms, and the second needs no other file."""
    from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

    from tidemill_airflow.tasks.deciding import DecisionOperator

    before = mill.published()
    turn(mill, ALL, "first")
    declare(mill, "'nobody'", "'anybody'")
    for form in (ALL, {"mode": "resume"}):
        with pytest.raises(AirflowFailException, match="changed what published numbers mean"):
            turn(mill, form, "first")
    decided = {"decision": "from now", "by": "ana", "why": "it counts now"}
    with pytest.raises(AirflowRescheduleException):
        executed(mill, DecisionOperator, decided, run="decides")
    assert "with the mode resume to complete it, or cancel" in NOTES[-1]
    turn(mill, {"mode": "cancel"}, "cancels")
    assert (opened(mill), mill.published()) == (None, before)
    assert executed(mill, DecisionOperator, decided, run="decides")["batches"]
