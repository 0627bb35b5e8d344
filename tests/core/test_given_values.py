"""What a declaration is given is of its kind, or refused with a text that says what was expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.builders import CONTRACTS
from tidemill import (
    AfterAny,
    AfterCount,
    AfterWatermark,
    ApproxDistinct,
    Count,
    CountEvictor,
    CountPolicy,
    Custom,
    DeltaEvictor,
    HeavyHitters,
    Max,
    Pipeline,
    Quantiles,
    Repeatedly,
    Sum,
    TimeEvictor,
    TimePolicy,
    Tumbling,
    TumblingBuffer,
)
from tidemill.core.bind.binding import bind
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.errors import DeclarationError
from tidemill.core.ordered.triggers import Trigger


def declare(build: Callable[[Any], None]) -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        build(pipeline.read("t", contract="events", event_time="ts"))
    bind(pipeline.spec, CONTRACTS)


def counted(stream: Any, **said: Any) -> None:
    results(stream).publish("counts", **{"contract": "counts", **said})


def results(stream: Any, aggregate: Aggregate | None = None) -> Any:
    return stream.window(Tumbling("1 minute")).aggregate(n=aggregate or Count())


OF_STEPS: dict[str, tuple[Callable[[Any], object], str]] = {
    "a predicate": (lambda s: counted(s.filter(5)), "the predicate of filter is a text, found 5"),
    "no predicate": (lambda s: counted(s.filter(None)), "the predicate of filter is a text, found None"),
    "a predicate of results": (lambda s: results(s).filter(5), "the predicate of filter is a text, found 5"),
    "an expression": (lambda s: counted(s.with_columns(m=5)), "the expression of with_columns for `m` is a text"),
    "an expression of results": (lambda s: results(s).with_columns(m=None), "for `m` is a text, found None"),
    "a column": (lambda s: counted(s.select(5)), "a column of select is a text, found 5"),
    "a key": (lambda s: s.key_by(None), "a column of key_by is a text, found None"),
    "several keys in one": (lambda s: s.key_by(["user"]), r"a column of key_by is a text, found \['user'\]"),
    "a stream": (lambda s: counted(s.union("x")), "union takes streams of rows, found 'x'"),
    "results beside rows": (lambda s: s.union(results(s)), "union takes streams of rows, found AggregatedStream"),
    "a route": (lambda s: s.split(a=5), "the predicate of split for `a` is a text, found 5"),
    "the other route": (lambda s: s.split(a="true", default=[]), r"the default of split is a text, found \[\]"),
    "overlap": (lambda s: s.split(a="true", overlap="no"), "overlap is True or False, found 'no'"),
    "the contract of a table": (lambda s: counted(s, contract=5), "the contract of `counts` is a text, found 5"),
    "a topic of results": (lambda s: counted(s, topic=5), "the topic of publish is a text, found 5"),
    "a topic of rows": (lambda s: s.publish("rows", contract="counts", topic=5), "the topic of publish is a text"),
    "a topic to read": (lambda s: s.pipeline.read(5, contract="events"), "a topic of read is a text, found 5"),
    "a pattern": (lambda s: s.pipeline.read(pattern=5, contract="events"), "the pattern of read is a text"),
    "event time": (
        lambda s: s.pipeline.read("u", contract="events", event_time=5),
        "event_time is a text, found 5",
    ),
    "the contract of records": (lambda s: s.pipeline.read("u", contract=5), "the contract of `u` is a text, found 5"),
    "the name of a step": (lambda s: s.filter("true", name=0), "not a name for an operator: 0"),
    "the class of a trigger": (
        lambda s: counted(s, trigger=AfterCount),
        r"AfterCount is a kind of trigger, and no trigger yet\n.*write AfterCount\(\.\.\.\)",
    ),
    "empty_on_time": (
        lambda s: counted(s, trigger=AfterWatermark(), empty_on_time="no"),
        "empty_on_time is True or False, found 'no'",
    ),
    "accept_loss": (
        lambda s: counted(s, trigger=AfterCount(1), accept_loss="no"),
        "accept_loss is True or False, found 'no'",
    ),
    "an empty accumulation": (
        lambda s: counted(s, trigger=AfterWatermark(), accumulation=""),
        "accumulation is one of \"discarding\", .* found ''",
    ),
    "an accumulation that is no text": (
        lambda s: counted(s, trigger=AfterWatermark(), accumulation={}),
        "accumulation is one of .* found {}",
    ),
    "an accumulation without a trigger": (
        lambda s: counted(s, accumulation="discarding"),
        r"by a trigger such as Repeatedly\(AfterCount\(100\)\), and there is none here",
    ),
    "an accumulation with a plain trigger": (
        lambda s: counted(s, trigger="on_update", accumulation="discarding"),
        "trigger='on_update' is none of them",
    ),
    "the text of a trigger": (lambda s: counted(s, trigger="AfterCount(3)"), "leave out the quotation marks"),
}


@pytest.mark.parametrize("case", OF_STEPS)
def test_a_step_refuses_what_is_of_another_kind(case: str) -> None:
    build, says = OF_STEPS[case]
    with pytest.raises(DeclarationError, match=says):
        declare(build)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Count(5), "the expression of Count is a text, found 5"),
        (lambda: Sum(None), "the expression of Sum is a text, found None"),
        (lambda: Max(""), "the expression of Max is a text, found ''"),
        (
            lambda: ApproxDistinct("x", "no"),
            "the precision of ApproxDistinct is a whole number from 4 to 21, found 'no'",
        ),
        (lambda: ApproxDistinct("x", 5.5), "a whole number from 4 to 21, found 5.5"),
        (lambda: Quantiles("x", 5), "ranks lie between 0 and 1, at least one, found 5"),
        (lambda: Quantiles("x", ("a",)), "ranks lie between 0 and 1"),
        (lambda: Quantiles("x", (float("nan"),)), "ranks lie between 0 and 1"),
        (lambda: HeavyHitters("x", "no"), "k of HeavyHitters, .*from 1 to 1,000, found 'no'"),
        (lambda: HeavyHitters("x", 1, 10**12), "tracked of HeavyHitters is a whole number from 1 to 1,000,000"),
        (lambda: HeavyHitters("x", 11, 10), "from 1 to 10, found 11"),
        (lambda: Custom(partial="x", merge={}, finish="x"), "partial of an aggregate has an expression for each"),
        (lambda: Custom({"a": "sum(x)"}, {"a": 5}, "x"), "the expression for `a` in merge of an aggregate is a text"),
        (lambda: Custom({"a": "sum(x)"}, {"a": "sum({a})"}, 5), "finish of an aggregate is a text, found 5"),
        (lambda: TumblingBuffer(TimePolicy("1 s"), emit_empty="no"), "emit_empty is True or False, found 'no'"),
        (lambda: TumblingBuffer(CountPolicy(2), emit_empty=0), "emit_empty is True or False, found 0"),
        (lambda: CountEvictor(1, after="no"), "after is True or False, found 'no'"),
        (lambda: TimeEvictor("1 s", after="no"), "after is True or False, found 'no'"),
        (lambda: DeltaEvictor("x", 1, after="no"), "after is True or False, found 'no'"),
        (lambda: Pipeline("p", every="1 minute", owner=5), "owner is a text, found 5"),
        (lambda: Pipeline("p", every="1 minute", description=None), "description is a text, found None"),
    ],
)
def test_aggregates_and_pipelines_refuse_what_is_of_another_kind(make: Callable[[], object], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        make()


def test_ranks_may_be_a_list() -> None:
    assert Quantiles("x", [0.5]) == Quantiles("x", (0.5,))


def test_a_trigger_has_a_hundred_parts_at_most() -> None:
    trigger: Trigger = AfterCount(1)
    for _ in range(98):
        trigger = Repeatedly(trigger)
    with pytest.raises(DeclarationError, match="at most 100 triggers, and this one of 199"):
        AfterAny(trigger, trigger)
    with pytest.raises(DeclarationError, match="at most 100 triggers, and this one of 101"):
        AfterWatermark(early=Repeatedly(trigger))


@pytest.mark.parametrize(
    ("part", "fix"),
    [
        (AfterCount, r"write AfterCount\(\.\.\.\)"),
        ("AfterCount(3)", "leave out the quotation marks"),
        ([AfterCount(1), AfterCount(2)], "without the brackets"),
        (5, r"write for example AfterCount\(100\)"),
    ],
)
def test_a_part_that_is_no_trigger_is_explained(part: Any, fix: str) -> None:
    with pytest.raises(DeclarationError, match=fix):
        AfterAny(part)
