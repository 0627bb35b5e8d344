"""One topic that is read with several delays: how it is declared, and the watermarks of its tables."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.builders import CONTRACTS
from tidemill.core.bind.binding import bind
from tidemill.core.bind.flow import Flow
from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregates import Count
from tidemill.core.declare.pipeline import Pipeline
from tidemill.core.errors import DeclarationError
from tidemill.core.plan.position import Position
from tidemill.core.time.watermarks import BEGINNING, END, lagging
from tidemill.core.time.windows import Tumbling

SECOND = 1_000_000
times = st.integers(-(2**60), 2**60)
lags = st.dictionaries(st.sampled_from("abc"), st.integers(1, 2**40))


def a_flow(*delays: str, topic: str = "t", **more: Any) -> Flow:
    """A table for each of these delays, called after its number; the last read may be `more`."""
    with Pipeline("p", every="1 minute") as pipeline:
        for number, delay in enumerate(delays):
            said = {"contract": "events", **(more if number == len(delays) - 1 else {})}
            read = pipeline.read(*topic.split(), delay=delay, **said)
            windowed = read.filter("true").window(Tumbling("10 seconds"))
            windowed.aggregate(n=Count()).publish(f"counts{number}", contract="counts")
    return bind(pipeline.spec, CONTRACTS)


def test_a_topic_is_read_once_and_its_tables_wait_for_different_times() -> None:
    flow = a_flow("1 s", "5 s", "2 s")
    assert [(i.topic, i.delay) for i in flow.inputs] == [("t", timedelta(seconds=1))]
    assert flow.lags == {"counts1": 4 * SECOND, "counts2": SECOND}
    assert [name for name, o in flow.spec.graph.operators.items() if isinstance(o, op.Behind)] == ["read_2", "read_3"]


def test_topics_may_be_named_in_another_order_or_by_a_pattern() -> None:
    assert a_flow("1 s", "3 s", topic="a b").lags == {"counts1": 2 * SECOND}
    with Pipeline("p", every="1 minute") as pipeline:
        for number, names in enumerate((("a", "b"), ("b", "a"))):
            read = pipeline.read(*names, contract="events", delay=timedelta(seconds=number))
            read.window(Tumbling("10 s")).aggregate(n=Count()).publish(f"counts{number}", contract="counts")
    assert bind(pipeline.spec, CONTRACTS).lags == {"counts1": SECOND}
    with Pipeline("p", every="1 minute") as pipeline:
        for number in range(2):
            read = pipeline.read(pattern="a.*", contract="events", delay=timedelta(seconds=number))
            read.window(Tumbling("10 s")).aggregate(n=Count()).publish(f"counts{number}", contract="counts")
    assert bind(pipeline.spec, CONTRACTS).reading(["ab"]).lags == {"counts1": SECOND}


def test_a_table_of_both_reads_waits_for_the_longer_delay() -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        soon, late = (pipeline.read("t", contract="events", delay=delay) for delay in ("0 s", "9 s"))
        other = pipeline.read("u", contract="events", delay="1 s")
        both = soon.union(late.filter("true"), other).window(Tumbling("10 s"))
        both.aggregate(n=Count()).publish("counts", contract="counts")
    assert bind(pipeline.spec, CONTRACTS).lags == {"counts": 9 * SECOND}


@pytest.mark.parametrize(
    ("delays", "more", "said", "fix"),
    [
        (("1 s", "1 s"), {}, "topic `t` is read twice, the second time with the same delay, 1 second", "stream twice"),
        (("2 s", "1 s"), {}, "with a shorter delay, 1 second", "first with the shortest delay"),
        (
            ("1 s", "2 s"),
            {"event_time": "ts"},
            "topic `t` is read twice, with a different event_time",
            "only the delay",
        ),
        (("1 s", "2 s"), {"contract": "counts"}, "with a different contract", "only the delay"),
        (("1 s", "2 s"), {"start": "latest"}, "with a different start", "only the delay"),
        (("1 s", "0 s"), {"watermark": "ts"}, "with a different watermark", "only the delay"),
        (("1 s", "0 s"), {"watermark_of": "other"}, "with a different watermark_of", "only the delay"),
    ],
)
def test_reads_of_one_topic_differ_only_in_a_longer_delay(
    delays: tuple[str, ...], more: dict[str, Any], said: str, fix: str
) -> None:
    with pytest.raises(DeclarationError) as found:
        a_flow(*delays, **more)
    assert said in found.value.message
    assert fix in found.value.fix


def test_names_among_others_are_refused() -> None:
    pipeline = Pipeline("p", every="1 minute")
    pipeline.read("a", "b", contract="events")
    with pytest.raises(DeclarationError, match="topic `a` is read twice"):
        pipeline.read("a", contract="events", delay="1 s")


@given(st.lists(times, min_size=1), lags)
def test_watermarks_of_tables_never_go_back_and_stay_behind(steps: list[int], behind: dict[str, int]) -> None:
    position = Position()
    for watermark in sorted(steps):
        after = position.after(batch_id=position.batch_id + 1, attempt=1, topics={}, watermark=watermark, lags=behind)
        for table in "abcd":
            assert after.watermark_of(table) == max(position.watermark_of(table), watermark - behind.get(table, 0))
        position = after


@given(times, times, st.integers(0, 2**40), st.integers(0, 2**40))
def test_a_longer_delay_holds_a_table_where_it_is(first: int, then: int, before: int, now: int) -> None:
    first, then = min(first, then), max(first, then)
    was = lagging(first, {"a": before}, lambda _: BEGINNING) or {}
    known = was.get("a", first)
    found = (lagging(then, {"a": now}, lambda _: known) or {}).get("a", then)
    assert found == max(known, then - now) <= then


def test_at_the_beginning_and_at_the_end_no_table_is_behind() -> None:
    assert [lagging(at, {"a": 5}, lambda _: 7) for at in (BEGINNING, END)] == [None, None]
    assert lagging(BEGINNING + 3, {"a": 5}, lambda _: BEGINNING) == {"a": BEGINNING}
