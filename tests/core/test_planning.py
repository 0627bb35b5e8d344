"""Planning is a pure function of position, log bounds, limit and clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from support.builders import NOW, a_commit, a_flow, tp
from tidemill.core.errors import OffsetsLost, TopicRecreated
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.planning import TopicBounds, plan_batch
from tidemill.core.plan.position import Position, TopicPosition
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, END, Furthest, PartitionClock


def bounds(held: Mapping[int, tuple[int, int]], topic_id: str = "id") -> Mapping[str, TopicBounds]:
    return {"t": TopicBounds(topic_id=topic_id, partitions={p: OffsetRange(tp(p), *r) for p, r in held.items()})}


def at(offsets: Mapping[int, int], *, watermark: int = BEGINNING, events: Mapping[int, int] | None = None) -> Position:
    times = events or {}
    clocks = {p: PartitionClock(max_event_time=times.get(p), active_at=micros(NOW)) for p in offsets}
    topic = TopicPosition(topic_id="id", offsets=offsets, clocks=clocks)
    return Position(batch_id=1, watermark=watermark, topics={"t": topic})


def planned(position: Position, held: Mapping[str, TopicBounds], **knobs: Any) -> BatchPlan | None:
    flow = knobs.pop("flow", None) or a_flow()
    knobs = {"clock": NOW, "limit": ReadLimit(), **knobs}
    return plan_batch(flow, position, held, batch_id=position.batch_id + 1, **knobs)


def ranges(plan: BatchPlan | None) -> list[tuple[int, int]]:
    assert plan is not None
    return [(r.from_offset, r.until_offset) for r in plan.topics["t"].ranges]


def test_a_new_pipeline_starts_where_the_log_starts() -> None:
    assert ranges(planned(Position(), bounds({0: (5, 9), 1: (0, 3)}))) == [(5, 9), (0, 3)]


def test_a_new_pipeline_that_starts_at_the_latest_reads_only_what_comes() -> None:
    held = bounds({0: (5, 9)})
    first = planned(Position(), held, flow=a_flow(start="latest"))
    assert first is not None
    assert ranges(first) == [(9, 9)]
    begun = a_commit(first).position
    assert planned(begun, held, flow=a_flow(start="latest")) is None
    assert ranges(planned(begun, bounds({0: (0, 12)}), flow=a_flow(start="latest"))) == [(9, 12)]


def test_a_partition_that_appears_later_is_read_from_its_start_even_when_the_pipeline_began_at_the_latest() -> None:
    held = bounds({0: (0, 9), 1: (0, 4)})
    assert ranges(planned(at({0: 9}), held, flow=a_flow(start="latest"))) == [(9, 9), (0, 4)]


def test_the_next_plan_starts_at_the_committed_offsets() -> None:
    assert ranges(planned(at({0: 9}), bounds({0: (0, 12)}))) == [(9, 12)]


def test_without_new_records_there_is_nothing_to_do() -> None:
    assert planned(at({0: 9}), bounds({0: (0, 9)})) is None


def test_a_limit_bounds_the_batch() -> None:
    plan = planned(at({0: 0, 1: 0}), bounds({0: (0, 90), 1: (0, 10)}), limit=ReadLimit(10))
    assert ranges(plan) == [(0, 9), (0, 1)]


@pytest.mark.parametrize("limit", [ReadLimit(10), ReadLimit(10, 3)])
def test_a_limit_below_the_number_of_partitions_lets_the_watermark_move_while_all_of_them_go_on_growing(
    limit: ReadLimit,
) -> None:
    position, marks = Position(), []
    for batch in range(140):
        # As in a feed: each partition has a record of each second, and gets more of them than a batch can read.
        plan = planned(position, bounds(dict.fromkeys(range(64), (0, 5 + batch))), limit=limit)
        assert plan is not None
        seen = {r.topic_partition: Furthest(r.until_offset) for r in plan.topics["t"].ranges if r}
        topics = plan.topics_after(seen)
        marks.append(plan.watermark_after(seen, {"t": 0}))
        position = position.after(batch_id=plan.batch_id, attempt=1, topics=topics, watermark=marks[-1])
    assert [marks[6], marks[69], marks[139]] == [7 * 10 // 64, 70 * 10 // 64, 140 * 10 // 64]


def test_a_limit_of_a_partition_bounds_each_of_them_and_the_batch_them_all() -> None:
    held = bounds({0: (0, 90), 1: (0, 10)})
    assert ranges(planned(at({0: 0, 1: 0}), held, limit=ReadLimit(of_partition=20))) == [(0, 20), (0, 10)]
    assert ranges(planned(at({0: 0, 1: 0}), held, limit=ReadLimit(15, 20))) == [(0, 10), (0, 5)]


def test_a_partition_that_is_known_to_be_silent_is_idle_once_it_is_read() -> None:
    held = bounds({0: (0, 9), 1: (0, 4), 2: (0, 0)})
    plan = planned(Position(), held, silent=(tp(1), tp(2)), limit=ReadLimit(of_partition=3))
    assert plan is not None
    assert plan.topics["t"].idle == (2,)
    plan = planned(at({0: 0, 1: 4, 2: 0}), held, silent=(tp(1), tp(2)))
    assert plan is not None
    assert plan.topics["t"].idle == (1, 2)


def test_what_an_open_transaction_keeps_back_is_not_silence_and_not_the_end() -> None:
    held = bounds({0: (0, 9), 1: (0, 4)})
    waits = {"t": replace(held["t"], waiting=frozenset({1}))}
    late = NOW + timedelta(hours=1)
    position = at({0: 0, 1: 4}, events={0: 1, 1: 1})
    for bounds_, idle in ((held, (1,)), (waits, ())):
        plan = planned(position, bounds_, clock=late, silent=(tp(1),), drain=True)
        assert plan is not None
        assert (plan.topics["t"].idle, plan.drains) == (idle, bounds_ is held)
    assert planned(at({0: 9, 1: 4}, watermark=50), waits, drain=True) is None


def test_retention_past_the_committed_offset_is_refused_and_names_the_range() -> None:
    with pytest.raises(OffsetsLost, match=r"t-0: offsets 80 to 99 are gone.*committed offset 80.*starts at 100"):
        planned(at({0: 80}), bounds({0: (100, 200)}))


def test_a_log_that_lost_its_end_is_refused() -> None:
    with pytest.raises(OffsetsLost, match="ends at 70, before the committed offset 80"):
        planned(at({0: 80}), bounds({0: (0, 70)}))


def test_a_topic_that_was_created_again_is_refused() -> None:
    with pytest.raises(TopicRecreated, match="expected id id, found other"):
        planned(at({0: 5}), bounds({0: (0, 9)}, topic_id="other"))


def test_an_idle_partition_lets_the_watermark_move_without_any_record() -> None:
    position = at({0: 5, 1: 5}, watermark=50, events={0: 200, 1: 50})
    later = NOW + timedelta(seconds=61)
    assert planned(position, bounds({0: (0, 5), 1: (0, 5)}), clock=NOW + timedelta(seconds=60)) is None
    # Both are silent, so none is left to decide: a record in one of them makes the other one idle.
    plan = planned(position, bounds({0: (0, 6), 1: (0, 5)}), clock=later)
    assert plan is not None
    assert plan.topics["t"].idle == (1,)
    assert plan.watermark_after({}, {"t": 0}) == 200


def test_a_partition_held_back_by_a_limit_is_not_idle() -> None:
    position = at({0: 5, 1: 5}, watermark=50, events={0: 200, 1: 50})
    plan = planned(position, bounds({0: (0, 900), 1: (0, 6)}), clock=NOW + timedelta(hours=1), limit=ReadLimit(1))
    assert plan is not None
    assert plan.topics["t"].idle == ()


def test_the_idle_timeout_is_exclusive() -> None:
    position = at({0: 5, 1: 5}, watermark=50, events={0: 50, 1: 50})
    for seconds, idle in ((60, ()), (61, (1,))):
        plan = planned(position, bounds({0: (0, 6), 1: (0, 5)}), clock=NOW + timedelta(seconds=seconds))
        assert plan is not None
        assert plan.topics["t"].idle == idle


def after(plan: BatchPlan | None) -> int:
    """The watermark after a plan of an input whose sender tells it."""
    assert plan is not None
    return plan.watermark_after({}, {"t": None})


def test_the_watermark_of_a_sender_counts_once_all_that_it_sent_is_read() -> None:
    flow, held = a_flow(watermark_of="sender"), bounds({0: (0, 4), 1: (0, 2)})
    assert flow.delays == {"t": None}
    assert after(planned(Position(), held, flow=flow, told={"t": 50})) == 50
    # Of one partition something is left.
    part = planned(Position(), held, flow=flow, told={"t": 50}, limit=ReadLimit(5))
    assert (after(part), part and part.topics["t"].marks) == (BEGINNING, {1: 50})
    # What an open transaction holds back may be of the sender.
    waiting = {"t": replace(held["t"], waiting={0})}
    assert after(planned(Position(), waiting, flow=flow, told={"t": 50})) == BEGINNING


def test_the_watermark_of_a_sender_moves_without_records_and_never_back() -> None:
    flow, held = a_flow(watermark_of="sender"), bounds({0: (0, 4)})
    first = planned(Position(), held, flow=flow, told={"t": 50})
    assert first is not None
    begun = replace(a_commit(first).position, watermark=after(first))
    # A sender is never silent: it tells that nothing came.
    later = {"flow": flow, "clock": NOW + timedelta(days=1)}
    assert after(planned(begun, held, told={"t": 60}, **later)) == 60
    for told in (50, 40, BEGINNING):
        assert planned(begun, held, told={"t": told}, **later) is None
    assert after(planned(begun, bounds({0: (0, 5)}), told={"t": 40}, **later)) == 50
    assert after(planned(begun, held, told={"t": END}, **later)) == END


def test_draining_waits_for_the_end_of_the_log() -> None:
    held = bounds({0: (0, 10)})
    early = planned(at({0: 0}), held, limit=ReadLimit(5), drain=True)
    last = planned(at({0: 5}), held, limit=ReadLimit(5), drain=True)
    assert early is not None
    assert not early.drains
    assert last is not None
    assert last.watermark_after({}, {"t": 0}) == END


def test_draining_closes_windows_even_when_all_records_are_read() -> None:
    plan = planned(at({0: 10}, watermark=50), bounds({0: (0, 10)}), drain=True)
    assert plan is not None
    assert plan.records == 0
    assert planned(at({0: 10}, watermark=END), bounds({0: (0, 10)}), drain=True) is None


def test_planning_twice_gives_the_same_plan() -> None:
    position, held = at({0: 3, 1: 0}), bounds({0: (0, 9), 1: (0, 4)})
    assert planned(position, held) == planned(position, held)


def test_the_position_after_a_plan_tiles_the_log() -> None:
    plan = planned(at({0: 3}), bounds({0: (0, 9), 1: (2, 4)}))
    assert plan is not None
    after = plan.topics_after({tp(0): Furthest(77)})["t"]
    assert after.offsets == {0: 9, 1: 4}
    assert after.clocks[0].max_event_time == 77
    assert after.clocks[1].max_event_time is None
