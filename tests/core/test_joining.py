"""A table that batches left out, and a topic that is read no more, are decisions as a change of meaning is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from support.builders import EVENTS, NOW, a_plan, a_table, tp
from tidemill import Count, Pipeline, Tumbling
from tidemill.core.bind.binding import bind
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.meaning import meanings
from tidemill.core.change.compatibility import check_compatibility
from tidemill.core.change.redefinition import meaning_after, redefined
from tidemill.core.errors import Incompatible
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.amendments import Fold, Reason, Repair, Rewind, SideOutput, Switch
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.planning import ReadLimit, TopicBounds, plan_batch
from tidemill.core.plan.position import Position, TopicPosition
from tidemill.core.plan.work import BackfillStep, Work
from tidemill.core.protocol.codec import decode, encode
from tidemill.core.protocol.view import View
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, PartitionClock

REASON = Reason(by="ana", why="a new table")
SECOND = 1_000_000
TABLES = {name: a_table(name, "window_start", "window_end", "n") for name in ("one", "two")}
CONTRACTS = {"events": EVENTS, **TABLES, "rows": a_table("rows", "user", "amount")}


def a_flow(*tables: str, read: Callable[[Pipeline], Any] | None = None) -> Flow:
    """A pipeline that publishes these tables, of topic `t` or of what is read."""
    with Pipeline("p", every="1 minute") as pipeline:
        events = read(pipeline) if read else pipeline.read("t", contract="events", event_time="ts")
        for name in tables:
            if name == "rows":
                events.select("user", "amount").publish("rows", contract="rows")
            else:
                events.window(Tumbling("10 seconds")).aggregate(n=Count()).publish(name, contract=name)
    return bind(pipeline.spec, CONTRACTS)


def by(pattern: str, *tables: str) -> Flow:
    """The same of the topics that match a pattern."""
    read = {"pattern": pattern, "contract": "events", "event_time": "ts"}
    return a_flow(*(tables or ("one",)), read=lambda pipeline: pipeline.read(**read))


def topics(events: Mapping[str, int | None]) -> Mapping[str, TopicPosition]:
    """Topics of one partition each, with their newest events, in seconds."""
    return {
        name: TopicPosition(
            topic_id=name,
            offsets={0: 3},
            clocks={
                0: PartitionClock(max_event_time=None if at is None else at * SECOND, active_at=micros(NOW)),
            },
        )
        for name, at in events.items()
    }


def a_position(*tables: str, newest: int | None = 15, **more: Any) -> Position:
    """What a batch leaves that published these tables."""
    position = Position(batch_id=2, topics=topics({"t": newest}), meanings=meanings(a_flow(*tables)))
    return replace(position, **more)


def after(flow: Flow, before: Position, decided: Reason | None = None) -> Position:
    """The position after one more live batch."""
    bounds = {
        name: TopicBounds(topic_id=name, partitions={0: OffsetRange(tp(0, name), 0, 9 * before.batch_id)})
        for name in before.topics
    }
    plan = plan_batch(
        flow.reading(before.topics),
        before,
        {source.topic: bounds[source.topic] for source in flow.reading(before.topics).inputs},
        batch_id=before.batch_id + 1,
        clock=NOW,
        limit=ReadLimit(),
        redefined=redefined(flow, before, decided),
    )
    assert plan is not None
    assert decode(type(plan), encode(plan)) == plan
    delays = dict.fromkeys(before.topics, 0)
    found = meaning_after(flow, plan, plan.position_after(1, {}, delays, shapes={}, panes={}))
    assert decode(Position, encode(found)) == found
    return found


def test_a_table_that_is_new_is_refused_until_somebody_decides_and_says_where_its_windows_begin() -> None:
    before, both = a_position("one"), a_flow("one", "two")
    with pytest.raises(Incompatible, match="publishes what earlier batches left out; nothing was moved") as error:
        redefined(both, before)
    assert error.value.message.splitlines()[1:] == [
        " two",
        "  a new table: without what was read up to batch 2, it gets windows that start after 1970-01-01 00:00:15",
    ]
    for way in ("tidemill rebuild p", "tidemill run p --from-now --why TEXT", "undo the change"):
        assert way in error.value.fix
    found = after(both, before, REASON)
    assert found.since is not None
    assert found.since["two"].batch_id == 3
    assert (found.whole_after("two"), found.whole_after("one")) == (15 * SECOND, BEGINNING)
    assert redefined(both, found) is None


def test_a_table_that_missed_batches_is_seen_when_it_comes_back() -> None:
    both = a_flow("one", "two")
    alone = after(a_flow("two"), a_position("one", "two", shapes={"one": {}}))
    with pytest.raises(Incompatible, match="left out by earlier batches, and back") as error:
        redefined(both, alone)
    assert error.value.message.splitlines()[1] == " one"
    back = after(both, alone, REASON)
    assert back.since is not None
    assert set(back.since) == {"one"}
    assert redefined(both, back) is None


ME = Reason(by="me")
WORKS = (
    Repair(source=SideOutput.LATE, version=1, batches=(), reason=ME),
    BackfillStep(job=Backfill(since=3, left={}, supersedes=(), by="me"), reads={}),
    Rewind(position=Position(), reason=ME),
    Switch(generation=2, reason=ME),
    Fold(batches=(), panes={}),
)


@pytest.mark.parametrize("work", WORKS, ids=lambda work: type(work).__name__)
def test_any_batch_that_leaves_a_table_out_makes_its_return_a_decision(work: Work) -> None:
    before, both = a_position("one", "two"), a_flow("one", "two")
    plan = replace(a_plan(batch_id=3, position=before), work=work)
    assert redefined(both, meaning_after(both, plan, before)) is None
    with pytest.raises(Incompatible, match="publishes what earlier batches left out"):
        redefined(both, meaning_after(a_flow("two"), plan, before))


def test_a_table_that_nothing_was_read_for_lacks_nothing() -> None:
    assert redefined(a_flow("one", "two"), a_position("one", newest=None)) is None
    elsewhere = a_position("one", newest=None, topics=topics({"t": None, "other": 15}))
    assert redefined(a_flow("one", "two"), elsewhere) is None


def test_a_ledger_of_before_takes_the_tables_of_its_next_batch_as_always_there() -> None:
    before = Position(batch_id=2, topics=topics({"t": 15}))
    assert redefined(a_flow("one", "two"), before) is None
    found = after(a_flow("one", "two"), before)
    assert found.since is None
    with pytest.raises(Incompatible):
        redefined(a_flow("one", "two", "rows"), found)


def test_a_table_without_windows_gets_the_rows_of_later_batches() -> None:
    with pytest.raises(Incompatible, match="it gets the rows of later batches alone"):
        redefined(a_flow("one", "rows"), a_position("one"))
    found = after(a_flow("one", "rows"), a_position("one"), REASON)
    assert (found.first_of_meaning("rows"), found.whole_after("rows")) == (3, BEGINNING)


def test_windows_stay_as_whole_as_they_were_when_something_else_is_decided() -> None:
    joined = after(a_flow("one", "two"), a_position("one"), REASON)
    other = a_flow(
        "one",
        "two",
        read=lambda p: p.read("t", contract="events", event_time="ts").filter("amount > 1"),
    )
    found = after(other, joined, REASON)
    assert found.since is not None
    assert {table: since.event_time for table, since in found.since.items()} == {"one": None, "two": 15 * SECOND}
    assert {since.batch_id for since in found.since.values()} == {4}


SHOPS = topics({"shop.de": 15, "shop.fr": 9})


@pytest.mark.parametrize("pattern", [r"shop\.de", r"other\..+", r"shop\.(?!fr).*"])
def test_a_pattern_that_leaves_a_topic_out_is_one_input_less(pattern: str) -> None:
    old = Position(batch_id=2, topics=SHOPS, meanings=meanings(by(r"shop\..+")))
    for before in (old, after(by(r"shop\..+"), old)):
        with pytest.raises(Incompatible, match="changed what published numbers mean; nothing was moved") as error:
            redefined(by(pattern), before)
        assert "  shop.fr: it was read, now nothing of it is" in error.value.message.splitlines()
        for way in ("tidemill rebuild p", "tidemill run p --from-now", "undo the change"):
            assert way in error.value.fix


@pytest.mark.parametrize("pattern", [r"shop\..*", r"shop\.(de|fr)", r"(shop|other)\..+"])
def test_a_pattern_that_matches_all_that_was_read_passes(pattern: str) -> None:
    old = Position(batch_id=2, topics=SHOPS, meanings=meanings(by(r"shop\..+")))
    for before in (old, after(by(r"shop\..+"), old)):
        assert redefined(by(pattern), before) is None


def test_a_topic_that_somebody_left_out_is_asked_for_once_and_may_come_back() -> None:
    before = after(by(r"shop\..+"), Position(batch_id=2, topics=SHOPS, meanings=meanings(by(r"shop\..+"))))
    assert before.matched == {"one": ("shop.de", "shop.fr")}
    narrowed = after(by(r"shop\.de"), before, REASON)
    assert narrowed.first_of_meaning("one") == 4
    assert "shop.fr" in narrowed.topics
    assert redefined(by(r"shop\.de"), narrowed) is None
    again = after(by(r"shop\..+"), narrowed)
    assert again.matched == {"one": ("shop.de", "shop.fr")}
    with pytest.raises(Incompatible):
        redefined(by(r"shop\.de"), again)


def test_a_topic_leaves_with_the_table_that_it_was_for() -> None:
    def two_patterns(*tables: str) -> Flow:
        with Pipeline("p", every="1 minute") as pipeline:
            for name, pattern in (("one", r"shop\..+"), ("two", r"cafe\..+")):
                if name in tables:
                    events = pipeline.read(pattern=pattern, contract="events", event_time="ts")
                    events.window(Tumbling("10 seconds")).aggregate(n=Count()).publish(name, contract=name)
        return bind(pipeline.spec, CONTRACTS)

    old = Position(
        batch_id=2, topics=topics({"shop.de": 1, "cafe.de": 1}), meanings=meanings(two_patterns("one", "two"))
    )
    before = after(two_patterns("one", "two"), old)
    assert before.matched == {"one": ("shop.de",), "two": ("cafe.de",)}
    assert redefined(two_patterns("one"), before) is None


def test_a_name_that_was_taken_out_is_one_input_less() -> None:
    def of(*names: str) -> Flow:
        return a_flow("one", read=lambda p: p.read(*names, contract="events", event_time="ts"))

    before = Position(batch_id=2, topics=topics({"a": 1, "b": 1}), meanings=meanings(of("a", "b")))
    with pytest.raises(Incompatible, match="b: event time: ts, now not there"):
        redefined(of("a"), before)
    assert redefined(of("a", "b", "c"), before) is None


def test_keys_and_windows_that_do_not_fit_advise_a_table_of_another_name_as_a_decision() -> None:
    view = View(position=a_position("one", shapes={"one": {"keys": "[]"}}), last_batch_id=2)
    with pytest.raises(Incompatible) as error:
        check_compatibility(a_flow("one"), view)
    assert (
        "another name in the declaration: the new one gets windows from now on, with `tidemill run p --from-now"
        in error.value.fix
    )
