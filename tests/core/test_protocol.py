"""The commit protocol: what may follow what, and who is fenced."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.builders import NOW, a_commit, a_plan, an_executor
from tidemill.core.contract.contract import Severity
from tidemill.core.contract.verdict import CheckResult, Verdict
from tidemill.core.errors import Busy, Fenced, LedgerDamaged
from tidemill.core.identity.semantics import SEMANTICS, is_ours
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.protocol.codec import from_json, to_json
from tidemill.core.protocol.events import Audited, Cancelled, Claimed, Committed, Event, Planned
from tidemill.core.protocol.leases import Holder
from tidemill.core.protocol.transitions import apply, check_takeover, fold
from tidemill.core.protocol.view import Fate, View

BROKEN = Verdict((CheckResult(table="t", rule="r", severity=Severity.ERROR, passed=False),))


def planned(plan: BatchPlan) -> Planned:
    return Planned(plan=plan, executor=an_executor(), at=NOW)


def claimed(attempt: int, batch_id: int = 1) -> Claimed:
    return Claimed(batch_id=batch_id, attempt=attempt, executor=an_executor(f"try {attempt}"), at=NOW)


def audited(attempt: int = 1, verdict: Verdict | None = None) -> Audited:
    return Audited(batch_id=1, attempt=attempt, verdict=verdict or Verdict(), logical_hash="hash", at=NOW)


def cancelled(attempt: int) -> Cancelled:
    return Cancelled(batch_id=1, attempt=attempt, reason="changed", at=NOW)


PLAN = a_plan()
OPEN = fold([planned(PLAN)])
AN_HOUR = timedelta(hours=1)


def test_a_batch_is_planned_audited_and_committed() -> None:
    view = fold([planned(PLAN), audited(), a_commit(PLAN)])
    assert view.open_batch is None
    assert view.position.topics["t"].offsets == {0: 10}
    assert (1, 1) in view.position.slices


def test_a_second_plan_loses_against_the_open_one() -> None:
    with pytest.raises(Fenced, match="another plan won"):
        apply(OPEN, planned(a_plan(until={0: 99})))


def test_a_plan_from_an_old_position_loses() -> None:
    view = fold([planned(PLAN), audited(), a_commit(PLAN)])
    with pytest.raises(Fenced, match="another run won"):
        apply(view, planned(a_plan(batch_id=2)))


@pytest.mark.parametrize("late", [audited(1), a_commit(PLAN), cancelled(1), claimed(2)], ids=lambda e: type(e).__name__)
def test_an_attempt_that_was_overtaken_can_do_nothing(late: Event) -> None:
    view = fold([planned(PLAN), claimed(2), audited(2)])
    with pytest.raises(Fenced, match=r"fenced|nothing of this attempt counts"):
        apply(view, late)


def test_a_batch_cannot_be_committed_twice() -> None:
    view = fold([planned(PLAN), audited(), a_commit(PLAN)])
    with pytest.raises(Fenced, match="not open any more"):
        apply(view, a_commit(PLAN))


def test_a_batch_without_a_verdict_cannot_commit() -> None:
    with pytest.raises(Fenced, match="no verdict"):
        apply(OPEN, a_commit(PLAN))


def test_a_blocked_batch_cannot_commit() -> None:
    with pytest.raises(Fenced, match="no verdict"):
        apply(fold([planned(PLAN), audited(verdict=BROKEN)]), a_commit(PLAN))


def test_a_blocked_batch_can_be_cancelled_and_planned_anew() -> None:
    view = fold([planned(PLAN), audited(verdict=BROKEN), claimed(2), cancelled(2), planned(a_plan(batch_id=2))])
    assert view.open_batch is not None
    assert view.open_batch.plan.batch_id == 2


def test_a_batch_that_may_be_published_cannot_be_cancelled() -> None:
    with pytest.raises(Fenced, match="must be completed"):
        apply(fold([planned(PLAN), audited(), claimed(2)]), cancelled(2))


def test_a_commit_of_another_plan_is_refused() -> None:
    view = fold([planned(PLAN), audited()])
    with pytest.raises(Fenced, match="another plan"):
        apply(view, replace(a_commit(PLAN), plan_hash="other"))


def test_a_commit_must_end_where_its_plan_ends() -> None:
    short = a_commit(a_plan(until={0: 9}))
    view = fold([planned(PLAN), audited()])
    with pytest.raises(LedgerDamaged, match="its plan ends at"):
        apply(view, replace(short, plan_hash=a_commit(PLAN).plan_hash))


def test_events_that_could_not_follow_each_other_are_a_damaged_ledger() -> None:
    with pytest.raises(LedgerDamaged, match="contradicts itself"):
        fold([planned(PLAN), claimed(3)])


@pytest.mark.parametrize(
    ("events", "same", "changed"),
    [
        ([], Fate.CONTINUED, Fate.CANCELLED),
        ([audited()], Fate.CONTINUED, Fate.REFUSED),
        ([audited(verdict=BROKEN)], Fate.BLOCKED, Fate.CANCELLED),
        ([audited(), claimed(2)], Fate.CONTINUED, Fate.REFUSED),
    ],
)
def test_what_becomes_of_an_open_batch(events: list[Event], same: Fate, changed: Fate) -> None:
    batch = fold([planned(PLAN), *events]).open_batch
    assert batch is not None
    assert batch.fate(PLAN.logical_hash) is same
    assert batch.fate("another") is changed


def test_a_cancelled_batch_leaves_no_visible_slice() -> None:
    first = fold([planned(PLAN), cancelled(1)])
    plan = a_plan(batch_id=2)
    view = fold([planned(plan), replace(audited(), batch_id=2), a_commit(plan)], first)
    assert (1, 1) not in view.position.slices
    assert (2, 1) in view.position.slices


def test_the_same_task_takes_over_at_once() -> None:
    assert OPEN.open_batch is not None
    again = an_executor("me")
    check_takeover(OPEN.open_batch, again, clock=NOW, takeover_after=AN_HOUR, holder=Holder.WORKS)


@pytest.mark.parametrize(("age", "holder"), [(0, Holder.UNKNOWN), (0, Holder.WORKS), (99, Holder.WORKS)])
def test_another_run_is_told_that_the_batch_is_busy(age: int, holder: Holder) -> None:
    assert OPEN.open_batch is not None
    other = an_executor("other")
    with pytest.raises(Busy, match="batch 1 is open: me on host"):
        check_takeover(OPEN.open_batch, other, clock=NOW + age * AN_HOUR, takeover_after=AN_HOUR, holder=holder)


@pytest.mark.parametrize(("age", "holder"), [(2, Holder.UNKNOWN), (0, Holder.STOPPED), (-1, Holder.STOPPED)])
def test_another_run_takes_over_an_old_batch_or_one_whose_holder_stopped(age: int, holder: Holder) -> None:
    assert OPEN.open_batch is not None
    other = an_executor("other")
    check_takeover(OPEN.open_batch, other, clock=NOW + age * AN_HOUR, takeover_after=AN_HOUR, holder=holder)


def test_the_newest_claim_names_the_lease_that_counts() -> None:
    first = fold([replace(planned(PLAN), lease="first")])
    second = apply(first, replace(claimed(2), lease="second"))
    third = apply(second, claimed(3))
    assert [view.open_batch.lease for view in (first, second, third) if view.open_batch] == ["first", "second", None]


@given(st.lists(st.sampled_from(["claim", "audit", "block", "commit", "cancel", "plan", "stale"]), max_size=25))
def test_whatever_is_tried_commits_tile_the_log_and_batches_only_grow(steps: list[str]) -> None:
    view, committed = View(), []
    for step in steps:
        for event in _tries(view, step):
            try:
                view = apply(view, event)
            except Fenced:
                continue
            if isinstance(event, Committed):
                committed.append(event)
    ends = [c.position.topics["t"].offsets[0] for c in committed]
    assert ends == sorted(set(ends))
    assert [c.batch_id for c in committed] == sorted({c.batch_id for c in committed})


def _tries(view: View, step: str) -> list[Event]:
    batch = view.open_batch
    if batch is None:
        end = view.position.topics["t"].offsets[0] if "t" in view.position.topics else 0
        return [planned(a_plan(batch_id=view.last_batch_id + 1, position=view.position, until={0: end + 5}))]
    number, plan = batch.plan.batch_id, batch.plan
    tries: dict[str, Event] = {
        "claim": claimed(batch.attempt + 1, number),
        "audit": replace(audited(batch.attempt), batch_id=number),
        "block": replace(audited(batch.attempt, BROKEN), batch_id=number),
        "commit": a_commit(plan, attempt=batch.attempt),
        "cancel": replace(cancelled(batch.attempt), batch_id=number),
        "plan": planned(plan),
        "stale": a_commit(plan, attempt=max(batch.attempt - 1, 1)),
    }
    return [tries[step]]


@pytest.mark.parametrize(
    "event",
    [planned(PLAN), claimed(2), audited(verdict=BROKEN), a_commit(PLAN), cancelled(1)],
    ids=lambda e: type(e).__name__,
)
def test_every_event_survives_being_written_and_read(event: Event) -> None:
    assert from_json(type(event), to_json(event)) == event


def test_a_shape_that_is_not_known_is_a_damaged_ledger() -> None:
    with pytest.raises(LedgerDamaged, match="newer version"):
        from_json(Claimed, '{"batch_id": "one"}')


@pytest.mark.parametrize("semantics", [SEMANTICS + 1, 99])
def test_a_batch_of_another_version_is_completed_by_that_version_alone(semantics: int) -> None:
    plan = replace(PLAN, semantics=semantics)
    opened, published = (fold([planned(plan), *events]).open_batch for events in ([], [audited()]))
    assert opened is not None
    assert published is not None
    assert opened.fate(plan.logical_hash) is Fate.CANCELLED
    assert published.fate(plan.logical_hash) is Fate.REFUSED
    assert replace(published, plan=replace(plan, semantics=SEMANTICS)).fate(plan.logical_hash) is Fate.CONTINUED


def test_a_plan_that_names_no_version_is_of_the_first() -> None:
    assert PLAN.semantics is None
    assert is_ours(None) is (SEMANTICS == 1)
