"""Partitions and topics that a log shows no more, and that come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.builders import CONTRACTS, NOW, a_commit, a_flow, an_executor, tp
from tidemill.core.bind.binding import bind
from tidemill.core.bind.flow import Flow
from tidemill.core.contract.verdict import Verdict
from tidemill.core.declare.aggregates import Count
from tidemill.core.declare.guarantees import OnLoss
from tidemill.core.declare.pipeline import Pipeline
from tidemill.core.errors import LedgerDamaged, LogError, OffsetsLost, UnknownTopic
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.planning import TopicBounds, plan_batch
from tidemill.core.plan.position import Gone, Position, TopicPosition
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.protocol.codec import from_json, to_json
from tidemill.core.protocol.events import Audited, Committed, Planned
from tidemill.core.protocol.transitions import fold
from tidemill.core.protocol.view import View
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, Furthest, PartitionClock
from tidemill.core.time.windows import Tumbling

Held = Mapping[str, Mapping[int, tuple[int, int]]]
GONE = (Gone(place=tp(1), by="me", why="it was dropped"),)


def shown(held: Held) -> dict[str, TopicBounds]:
    return {
        topic: TopicBounds(
            topic_id="id", partitions={p: OffsetRange(TopicPartition(topic, p), *r) for p, r in of_topic.items()}
        )
        for topic, of_topic in held.items()
    }


def of_a_pattern(*topics: str, **options: Any) -> Flow:
    with Pipeline("p", every="1 minute", **options) as pipeline:
        rows = pipeline.read(pattern="t.*", contract="events", event_time="ts")
        rows.window(Tumbling("10 seconds")).aggregate(n=Count()).publish("counts", contract="counts")
    return bind(pipeline.spec, CONTRACTS).reading(topics, known=topics)


def skipping() -> Flow:
    flow = a_flow()
    return replace(flow, spec=replace(flow.spec, on_loss=OnLoss.SKIP))


def at(offsets: Mapping[str, Mapping[int, int]], **more: Any) -> Position:
    """Every partition's newest event is at its offset; all of them were active now."""
    topics = {
        topic: TopicPosition(
            topic_id="id",
            offsets=known,
            clocks={p: PartitionClock(max_event_time=o, active_at=micros(NOW)) for p, o in known.items()},
        )
        for topic, known in offsets.items()
    }
    return Position(batch_id=1, topics=topics, **more)


def planned(flow: Flow, position: Position, held: Held, **more: Any) -> BatchPlan:
    plan = plan_batch(
        flow,
        position,
        shown(held),
        batch_id=position.batch_id + 1,
        **{"clock": NOW, "limit": ReadLimit(), **more},
    )
    assert plan is not None
    return plan


def view_at(position: Position) -> View:
    return View(last_batch_id=position.batch_id, position=position)


def committed(plan: BatchPlan, **more: Any) -> View:
    audited = Audited(batch_id=plan.batch_id, attempt=1, verdict=Verdict(), logical_hash="hash", at=NOW)
    commit = a_commit(plan)
    events = [
        Planned(plan=from_json(BatchPlan, to_json(plan)), executor=an_executor(), at=NOW),
        audited,
        from_json(Committed, to_json(replace(commit, position=replace(commit.position, **more)))),
    ]
    return fold(events, view_at(plan.position))


def test_a_partition_that_is_missing_is_refused_by_name_and_offset() -> None:
    with pytest.raises(
        OffsetsLost, match=r"p: the log does not show .*: t-1 \(committed offset 7\).*nothing was moved"
    ) as e:
        planned(a_flow(), at({"t": {0: 5, 1: 7}}), {"t": {0: (0, 9)}})
    assert "`tidemill gone p t-1 --why ...`" in e.value.fix


def test_what_is_declared_gone_is_done_without_until_it_comes_back() -> None:
    first = planned(a_flow(), at({"t": {0: 5, 1: 7}}), {"t": {0: (0, 9)}}, gone=GONE)
    assert (first.live.missing, first.live.gone) == ((tp(1),), GONE)
    position = committed(first).position
    assert position.topics["t"].offsets == {0: 9, 1: 7}
    assert position.topics["t"].clocks[1].max_event_time == 7
    assert position.gone == GONE
    second = planned(a_flow(), position, {"t": {0: (0, 12)}})
    assert (second.live.missing, second.live.gone) == ((tp(1),), None)
    back = planned(a_flow(), committed(second).position, {"t": {0: (0, 12), 1: (0, 10)}})
    assert [str(r) for r in back.topics["t"].ranges] == ["t-0 [12, 12)", "t-1 [7, 10)"]
    assert back.live.missing is None
    after = committed(back).position
    assert after.gone is None
    with pytest.raises(OffsetsLost, match="committed offset 10"):
        planned(a_flow(), after, {"t": {0: (0, 13)}})


def test_to_declare_something_gone_is_something_to_do() -> None:
    position = at({"t": {0: 5, 1: 7}})
    assert planned(a_flow(), position, {"t": {0: (0, 5)}}, gone=GONE).records == 0


def test_what_comes_back_from_a_later_start_is_refused() -> None:
    position = committed(planned(a_flow(), at({"t": {0: 5, 1: 7}}), {"t": {0: (0, 9)}}, gone=GONE)).position
    with pytest.raises(OffsetsLost, match="t-1: offsets 7 to 8 are gone"):
        planned(a_flow(), position, {"t": {0: (0, 9), 1: (9, 12)}})


def test_a_pipeline_that_skips_what_is_lost_goes_on_and_says_what_is_missing() -> None:
    flow = skipping()
    plan = planned(flow, at({"t": {0: 5, 1: 7}}), {"t": {0: (0, 9)}})
    assert plan.live.missing == (tp(1),)
    position = committed(plan).position
    assert position.topics["t"].offsets == {0: 9, 1: 7}
    back = planned(flow, position, {"t": {0: (0, 9), 1: (9, 12)}})
    assert [str(r) for r in back.live.skipped or ()] == ["t-1 [7, 9)"]


def test_a_topic_that_a_pattern_found_may_disappear_and_goes_on_where_it_ended() -> None:
    flow = of_a_pattern("t1", "t2")
    plan = planned(flow, at({"t1": {0: 5}, "t2": {0: 3}}, watermark=9), {"t2": {0: (0, 9)}})
    assert set(plan.topics) == {"t2"}
    assert plan.live.missing == (TopicPartition("t1", 0),)
    position = committed(plan).position
    assert position.topics["t1"].offsets == {0: 5}
    back = planned(flow, position, {"t1": {0: (0, 8)}, "t2": {0: (0, 9)}})
    assert [str(r) for t in ("t1", "t2") for r in back.topics[t].ranges] == ["t1-0 [5, 8)", "t2-0 [9, 9)"]
    assert plan_batch(flow, position, shown({"t2": {0: (0, 9)}}), batch_id=3, clock=NOW, limit=ReadLimit()) is None


@pytest.mark.parametrize("held", [{}, {"t1": {}, "t2": {}}])
def test_a_pattern_of_which_nothing_is_left_is_refused(held: Held) -> None:
    with pytest.raises(UnknownTopic, match=r"t1-0 \(committed offset 5\)"):
        planned(of_a_pattern("t1", "t2"), at({"t1": {0: 5}, "t2": {0: 3}}), held)


def test_a_partition_of_a_topic_that_is_there_is_missed_under_a_pattern_too() -> None:
    with pytest.raises(OffsetsLost, match=r"t1-1 \(committed offset 4\)"):
        planned(
            of_a_pattern("t1", "t2"), at({"t1": {0: 5, 1: 4}, "t2": {0: 3}}), {"t1": {0: (0, 9)}, "t2": {0: (0, 9)}}
        )


def test_a_named_topic_that_is_gone_is_refused_unless_all_of_it_is_declared_gone() -> None:
    position = at({"t": {0: 5, 1: 7}})
    with pytest.raises(UnknownTopic, match=r"t-0 \(committed offset 5\), t-1 \(committed offset 7\)"):
        planned(a_flow(), position, {})
    both = (Gone(place=tp(0), by="me"), *GONE)
    plan = planned(a_flow(), position, {}, gone=both)
    assert committed(plan).position.topics == position.topics


def test_what_a_declaration_reads_no_more_is_not_missed() -> None:
    position = at({"t": {0: 5}, "other": {0: 3}})
    plan = planned(a_flow(), position, {"t": {0: (0, 9)}})
    assert plan.live.missing is None
    assert committed(plan).position.topics["other"] == position.topics["other"]


def test_a_missing_partition_holds_no_watermark_back_and_comes_back_behind_it() -> None:
    position = at({"t": {0: 100, 1: 7}}, watermark=7)
    plan = planned(a_flow(idle_timeout=None), position, {"t": {0: (0, 200)}}, gone=GONE)
    assert plan.watermark_after({tp(0): Furthest(200)}, {"t": 0}) == 200
    assert plan.watermark_after({}, {"t": 0}) == 100
    back = planned(a_flow(), replace(position, watermark=200), {"t": {0: (0, 200), 1: (0, 9)}})
    assert back.watermark_after({tp(1): Furthest(9)}, {"t": 0}) == 200
    later = NOW + timedelta(hours=1)
    assert planned(a_flow(), position, {"t": {0: (0, 200), 1: (0, 7)}}, clock=later).topics["t"].idle == (1,)


@pytest.mark.parametrize(
    "topics",
    [
        {"t": TopicPosition(topic_id="id", offsets={0: 9}, clocks={0: PartitionClock(max_event_time=1, active_at=1)})},
        {},
    ],
)
def test_a_commit_that_forgets_a_partition_is_refused(topics: Any) -> None:
    plan = planned(a_flow(), at({"t": {0: 5, 1: 7}}), {"t": {0: (0, 9)}}, gone=GONE)
    with pytest.raises(LedgerDamaged, match="would commit offsets"):
        committed(plan, topics=topics)
    of_another = planned(of_a_pattern("t1", "t2"), at({"t1": {0: 5}, "t2": {0: 3}}), {"t2": {0: (0, 9)}})
    with pytest.raises(LedgerDamaged, match="would commit offsets"):
        committed(of_another, topics={"t2": of_another.topics_after({})["t2"]})


def test_a_commit_that_forgets_who_is_gone_is_refused() -> None:
    plan = planned(a_flow(), at({"t": {0: 5, 1: 7}}), {"t": {0: (0, 9)}}, gone=GONE)
    with pytest.raises(LedgerDamaged, match="another position"):
        committed(plan, gone=None)


def test_a_ledger_whose_commits_forgot_partitions_is_still_read() -> None:
    plan = planned(a_flow(), at({"t": {0: 5, 1: 7}}), {"t": {0: (0, 9)}}, gone=GONE)
    plan = replace(plan, work=replace(plan.live, missing=None, gone=None))
    short = TopicPosition(topic_id="id", offsets={0: 9}, clocks={0: PartitionClock(max_event_time=1, active_at=1)})
    assert committed(plan, topics={"t": short}).position.topics["t"].offsets == {0: 9}


CHANGES = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["grow", "vanish", "return", "declare"])), max_size=30)


@given(changes=CHANGES, pattern=st.booleans(), limit=st.sampled_from([None, 1, 4]))
def test_whatever_comes_and_goes_each_offset_is_read_once_in_order_or_the_plan_is_refused(
    changes: list[tuple[int, str]], pattern: bool, limit: int | None
) -> None:
    flow = of_a_pattern("t1", "t2", "t3") if pattern else a_flow()
    topics = ["t1", "t2", "t3"] if pattern else ["t", "t", "t"]
    places = [TopicPartition(topics[n % 3], n // 3 if pattern else n) for n in range(6)]
    ends, there, view = dict.fromkeys(places, 0), set(places), View()
    read: dict[TopicPartition, int] = dict.fromkeys(places, 0)
    for number, change in changes:
        place, gone = places[number], ()
        match change:
            case "grow":
                ends[place] += 2
            case "vanish":
                there.discard(place)
            case "return":
                there.add(place)
            case _:
                known = view.position.topics.get(place.topic)
                if place not in there and known is not None and place.partition in known.offsets:
                    gone = (Gone(place=place, by="me"),)
        held: dict[str, dict[int, tuple[int, int]]] = {}
        for tp_ in sorted(there):
            held.setdefault(tp_.topic, {})[tp_.partition] = (0, ends[tp_])
        try:
            plan = plan_batch(
                flow,
                view.position,
                shown(held),
                batch_id=view.last_batch_id + 1,
                clock=NOW,
                limit=ReadLimit(limit),
                gone=gone,
            )
        except LogError:
            assert there != set(places)
            continue
        if plan is None:
            continue
        for item in (r for t in plan.topics.values() for r in t.ranges):
            assert item.from_offset == read[item.topic_partition]
            read[item.topic_partition] = item.until_offset
        after = committed(plan).position
        assert after.watermark >= BEGINNING
        view = view_at(after)
        assert {tp_: o for tp_, o in read.items() if o} == {
            TopicPartition(t, p): o for t, known in after.topics.items() for p, o in known.offsets.items() if o
        }
