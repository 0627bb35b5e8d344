"""What may be forgotten: no window that may still fire or be repaired loses a pane; and what is refused afterwards."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.builders import a_commit, a_flow, a_plan, an_executor
from tidemill import Sliding, Tumbling
from tidemill.core.bind.flow import Flow
from tidemill.core.contract.verdict import Verdict
from tidemill.core.errors import AmendmentError, DeclarationError, Fenced, Incompatible
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.position import Position, TopicPosition
from tidemill.core.plan.work import Reading
from tidemill.core.protocol.events import Audited, Forgotten, Planned
from tidemill.core.protocol.transitions import apply
from tidemill.core.protocol.view import View
from tidemill.core.repair.state_retention import back_to, check_age, check_lateness, forgettable
from tidemill.core.time.panes import EvenPanes
from tidemill.core.time.spans import PaneSpan
from tidemill.core.time.watermarks import BEGINNING, END, PartitionClock
from tidemill.engine.aggregate.firing import Firing, Refiring

SECOND = 1_000_000
times = st.integers(-(2**55), 2**55)


@st.composite
def all_panes(draw: st.DrawFn) -> EvenPanes:
    slide = draw(st.integers(1, 5000))
    size = draw(st.integers(slide, slide * 4))
    return EvenPanes(size=size, slide=slide, offset=draw(st.integers(0, slide - 1)))


def at(second: int | None, *, until: int | None = None, job: Backfill | None = None, newest: int = 0) -> Position:
    """A position with this watermark in seconds, None for the end of input after an event at `newest`."""
    watermark = END if second is None else second * SECOND
    clock = PartitionClock(max_event_time=newest * SECOND, active_at=0)
    topics = {"t": TopicPosition(topic_id="id", offsets={0: 9}, clocks={0: clock})}
    forgotten = None if until is None else until * SECOND
    return Position(batch_id=9, watermark=watermark, topics=topics, forgotten_until=forgotten, backfill=job)


def a_job(first: int) -> Backfill:
    """A backfill of a window that starts at this second."""
    panes = {"counts": (PaneSpan(first * SECOND, first * SECOND),)}
    return Backfill(since=8, left={"t": ()}, supersedes=(), panes=panes, by="me")


def tolerant(lateness: int, window: Any = None) -> Flow:
    """A flow whose windows take records for so many seconds after their end."""
    flow = a_flow(window=window)
    sinks = tuple(replace(sink, allowed_lateness=timedelta(seconds=lateness)) for sink in flow.sinks)
    return replace(flow, sinks=sinks)


@given(all_panes(), times)
def test_the_first_kept_window_is_the_earliest_that_ends_after(panes: EvenPanes, until: int) -> None:
    first = panes.first_ending_after(until).start
    assert panes.last_window_of(first).start == first
    assert first + panes.size > until >= first - panes.slide + panes.size


@given(all_panes(), times, times)
def test_a_record_is_refused_exactly_when_its_pane_is_gone(panes: EvenPanes, until: int, time: int) -> None:
    refused = panes.is_late(time, watermark=until, allowed_lateness=0)
    assert refused == (panes.pane_of(time) < panes.first_ending_after(until).start)


@given(all_panes(), times, st.integers(-40, 40))
def test_a_window_that_may_fire_has_all_its_panes(panes: EvenPanes, until: int, near: int) -> None:
    for window in panes.windows_of(until + near * panes.slide // 8):
        if window.end > until:
            assert min(panes.panes_of(window)) >= panes.first_ending_after(until).start


@pytest.mark.parametrize("window", [Tumbling("10 seconds"), Sliding("60 seconds", "7 seconds"), Sliding("12 s", "5 s")])
@given(until=st.integers(0, 900), pane=st.integers(0, 1000), after=st.integers(900, 1000))
def test_no_window_that_a_repair_or_a_backfill_fires_lacks_a_pane(
    window: Any, until: int, pane: int, after: int
) -> None:
    [sink] = a_flow(window=window).sinks
    panes = sink.window.panes
    start = panes.pane_of(pane * SECOND)
    kept = panes.first_ending_after(until * SECOND).start
    position = at(after, until=until)
    plan = replace(a_plan(position=position), work=Reading(reads={}))
    for low, high in Firing.of(sink, plan, position).spans(sink, [start] if start >= kept else []):
        assert kept <= low < high
    job = Backfill(since=1, left={}, supersedes=(), panes={sink.table: (PaneSpan(start, start),)}, by="me")
    for low, high in Refiring.of(sink, job, position).ranges:
        assert kept <= low < high
        ends = Refiring.of(sink, job, position).bounds(sink, (low, high))
        assert panes.first_ending_after(ends["_refused_until"]).start >= kept


def test_windows_are_forgotten_some_time_after_they_close_wherever_one_may_go_on() -> None:
    flow, age = tolerant(20), timedelta(seconds=30)
    assert forgettable(flow, at(1000), [at(900), at(1000)], age) == (900 - 20 - 30) * SECOND
    assert forgettable(flow, at(1000), [], timedelta(0)) == (1000 - 20) * SECOND
    assert forgettable(flow, at(None, newest=500), [at(900)], age) == (500 - 20 - 30) * SECOND, (
        "the greatest event time"
    )
    assert forgettable(flow, at(1000), [Position()], age) is None, "from a position without events all may come"
    assert forgettable(flow, at(1000, until=850), [at(900)], age) is None, "no further than before"
    assert forgettable(flow, at(-62_135_596_750), [], age) is None, "before the year 1 there is nothing"
    assert forgettable(replace(flow, sinks=()), at(1000), [], age) is None


def test_nothing_is_forgotten_while_a_backfill_is_open_nor_what_one_would_need_after_a_rewind() -> None:
    flow, age = tolerant(0), timedelta(0)
    assert forgettable(flow, at(1000, job=a_job(800)), [], age) is None
    assert forgettable(flow, at(1000), [at(990, job=a_job(800))], age) == 800 * SECOND
    assert forgettable(flow, at(1000, until=850), [at(990, job=a_job(800))], age) == 990 * SECOND, (
        "nobody can go back into a backfill of what is forgotten"
    )


def test_going_back_keeps_in_mind_what_is_forgotten_and_is_refused_where_that_would_fire() -> None:
    flow = tolerant(20)
    now = at(1000, until=500)
    assert back_to(flow, at(520), now) == at(520, until=500)
    assert back_to(flow, at(None, newest=100), now) == at(None, until=500, newest=100), "all that comes is late"
    assert back_to(flow, at(100), at(1000)) == at(100), "everything is there"
    for then in (at(519), Position(), at(None, job=a_job(490)), at(900, job=a_job(490))):
        with pytest.raises(AmendmentError, match=r"1970-01-01 00:08:20 would fire.*has removed their state"):
            back_to(flow, then, now)
    assert back_to(flow, at(900, job=a_job(500)), now).forgotten_until == 500 * SECOND


def test_windows_that_take_records_for_longer_than_state_is_kept_are_refused() -> None:
    check_age(tolerant(20), timedelta(seconds=20))
    with pytest.raises(DeclarationError, match=r"counts.*20 seconds.*\[maintenance\] state.*19 seconds"):
        check_age(tolerant(20), timedelta(seconds=19))


def test_lateness_that_is_raised_beyond_what_is_there_is_refused_until_time_has_passed() -> None:
    check_lateness(tolerant(500), at(1000, until=500))
    check_lateness(tolerant(501), at(1000))
    check_lateness(tolerant(501), at(None, until=500))
    with pytest.raises(Incompatible, match=r"allowed_lateness of counts, 501 seconds") as error:
        check_lateness(tolerant(501), at(1000, until=500))
    assert "at most 500 seconds" in error.value.fix


def forgotten(until: int) -> Forgotten:
    return Forgotten(batch_id=1, until=until * SECOND, at=a_commit(a_plan()).at)


def test_the_ledger_takes_it_only_between_batches_and_never_back() -> None:
    view = apply(View(position=at(100), last_batch_id=9), forgotten(50))
    assert view.position == at(100, until=50)
    with pytest.raises(Fenced, match="is removed already"):
        apply(view, forgotten(49))
    with pytest.raises(Fenced, match="a backfill is open"):
        apply(View(position=at(100, job=a_job(1))), forgotten(50))
    plan = a_plan()
    opened = apply(View(), Planned(plan=plan, executor=an_executor(), at=plan.clock))
    with pytest.raises(Fenced, match="batch 1 is open"):
        apply(opened, forgotten(50))
    audited = Audited(batch_id=1, attempt=1, verdict=Verdict(()), logical_hash="", at=plan.clock)
    committed = apply(apply(opened, audited), a_commit(plan))
    assert apply(committed, forgotten(50)).position.forgotten_until == 50 * SECOND


def test_a_plan_of_before_does_not_follow() -> None:
    view = View(position=at(100), last_batch_id=9)
    plan = a_plan(batch_id=10, position=view.position)
    with pytest.raises(Fenced, match="not the last"):
        apply(apply(view, forgotten(50)), Planned(plan=plan, executor=an_executor(), at=plan.clock))


def test_what_is_read_again_is_late_only_for_what_is_forgotten() -> None:
    live = a_plan(position=at(1000, until=500))
    plan = replace(live, work=Reading(reads={}))
    assert plan.lateness_watermark == 500 * SECOND
    assert live.lateness_watermark == 1000 * SECOND
    assert replace(plan, position=at(1000)).lateness_watermark == BEGINNING
