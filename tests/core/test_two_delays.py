"""One topic that is read with several delays: how it is declared, and the watermarks of its tables."""

from __future__ import annotations

from dataclasses import replace
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


def declared(*uses: str) -> Flow:
    """A pipeline with a read for each of these: `windows`, `rows`, `both` or `nothing`; each delay is a second more."""
    with Pipeline("p", every="1 minute") as pipeline:
        for number, use in enumerate(uses):
            read = pipeline.read("t", contract="events", delay=timedelta(seconds=number))
            if use in {"windows", "both"}:
                read.window(Tumbling("10 s")).aggregate(n=Count()).publish(f"counts{number}", contract="counts")
            if use in {"rows", "both"}:
                read.select("ts", "user", "amount").publish(f"rows{number}", contract="rows")
            if use == "discarded":
                read.discard()
    return bind(pipeline.spec, {**CONTRACTS, "rows": replace(CONTRACTS["events"], name="rows", format=None)})


@pytest.mark.parametrize(
    ("uses", "said"),
    [
        (("nothing", "windows"), "leads nowhere, but for the reads with a longer delay"),
        (("windows", "rows"), "has a longer delay, but no table that waits for it"),
        (("windows", "discarded"), "has a longer delay, but no table that waits for it"),
        (("windows", "nothing"), "leads nowhere"),
    ],
)
def test_a_read_without_effect_is_refused(uses: tuple[str, ...], said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        declared(*uses)


def test_a_read_may_lead_to_rows_besides() -> None:
    assert declared("rows", "both", "windows").lags == {"counts1": SECOND, "counts2": 2 * SECOND}


def test_two_further_reads_with_one_delay_are_refused() -> None:
    with pytest.raises(DeclarationError, match="has the delay of an earlier read of its topic"):
        a_flow("0 s", "1 minute", "60 seconds")


def test_names_among_others_are_refused() -> None:
    pipeline = Pipeline("p", every="1 minute")
    pipeline.read("a", "b", contract="events")
    with pytest.raises(DeclarationError, match="topic `a` is read twice"):
        pipeline.read("a", contract="events", delay="1 s")


@given(st.lists(times, min_size=1), lags)
def test_watermarks_of_tables_never_go_back_and_stay_behind(steps: list[int], behind: dict[str, int]) -> None:
    position, most = Position(), BEGINNING
    for least in steps:
        most = max(most, least)
        found = lagging(most, least, behind, position.watermark_of)
        after = position.after(batch_id=position.batch_id + 1, attempt=1, topics={}, watermark=most, lagging=found)
        for table in "abcd":
            assert after.watermark_of(table) == max(position.watermark_of(table), least - behind.get(table, 0))
        position = after


@given(times, times, lags, lags)
def test_another_delay_holds_a_table_where_it_is(
    first: int, then: int, before: dict[str, int], now: dict[str, int]
) -> None:
    first, then = min(first, then), max(first, then)
    was = Position(watermark=first, lagging=lagging(first, first, before, lambda _: BEGINNING))
    found = Position(watermark=then, lagging=lagging(then, then, now, was.watermark_of))
    for table, lag in now.items():
        assert found.watermark_of(table) == max(was.watermark_of(table), then - lag) <= then


def test_a_longer_delay_of_the_first_read_moves_no_other_table() -> None:
    known = {"a": 10}
    # The pipeline's watermark stays at 20, where its delay was 1: by its delay of 8 it would be at 14.
    assert lagging(20, 14, {"a": 2}, known.__getitem__) == {"a": 12}
    assert lagging(20, None, {"a": 2}, known.__getitem__) == {"a": 10}


def test_at_the_beginning_and_at_the_end_no_table_is_behind() -> None:
    assert [lagging(at, at, {"a": 5}, lambda _: 7) for at in (BEGINNING, END)] == [None, None]
    assert lagging(BEGINNING + 3, BEGINNING + 3, {"a": 5}, lambda _: BEGINNING) == {"a": BEGINNING}
