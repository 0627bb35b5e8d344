"""Steps after `aggregate` in a declaration: what they may do, and what is said where they may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.declarations import CONTRACTS, a_table
from tidemill import Count, Pipeline, Sum, Tumbling
from tidemill.core.bind.binding import bind
from tidemill.core.bind.meaning import meanings
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.declare.operators import Filter, Select, WithColumns
from tidemill.core.errors import DeclarationError


def bound(steps: Callable[[Any], Any], *columns: str) -> WindowedSink:
    """The sink of a pipeline with these steps between aggregates and publication."""
    with Pipeline("p", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts")
        results = orders.key_by("shop").window(Tumbling("1 hour")).aggregate(n=Count(), amount=Sum("amount"))
        steps(results).publish("out", contract="out")
    [sink] = bind(pipeline.spec, {**CONTRACTS, "out": a_table("out", *columns)}).sinks
    assert isinstance(sink, WindowedSink)
    return sink


def test_steps_follow_one_another_and_say_what_is_published() -> None:
    sink = bound(
        lambda r: r.filter("n > 1").with_columns(twice="n * 2").select("window_start", "shop", "twice"),
        *("window_start", "shop", "twice"),
    )
    assert [type(step) for step in sink.results] == [Filter, WithColumns, Select]
    assert (sink.chooses, sink.direct, sink.merges_ahead) == (True, {}, False)
    assert sink.row_key == ("window_start", "shop")


def test_without_steps_a_declaration_means_what_it_meant() -> None:
    sink = bound(lambda r: r, "window_start", "window_end", "shop", "n", "amount")
    assert (sink.results, sink.chooses, set(sink.direct)) == ((), False, {"n", "amount"})


def test_a_filter_changes_what_a_table_means() -> None:
    def meaning(text: str) -> Any:
        with Pipeline("p", every="1 minute") as pipeline:
            orders = pipeline.read("orders", contract="orders", event_time="ts")
            orders.window(Tumbling("1 hour")).aggregate(n=Count()).filter(text).publish("hourly", contract="hourly")
        return meanings(bind(pipeline.spec, CONTRACTS))["hourly"]

    assert meaning("n > 1")["results"] != meaning("n > 2")["results"]


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a column of records": (lambda r: r.filter("price > 1"), "there is no column `price`"),
    "the place of a record": (lambda r: r.filter("_offset > 1"), "a result comes from many records"),
    "no predicate": (lambda r: r.filter("n + 1"), "a condition is true or false"),
    "the start replaced": (lambda r: r.with_columns(window_start="window_end"), "tells rows apart"),
    "a key replaced": (lambda r: r.with_columns(SHOP="'x'"), "tells rows apart"),
    "a key left out": (lambda r: r.select("window_start", "n"), "`shop`, which tells rows apart"),
    "chance": (lambda r: r.filter("rand() > 0.5"), "rand"),
    "an aggregate": (lambda r: r.filter("sum(n) > 1"), "sum"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_no_step_may_do_is_refused_where_it_stands(case: str) -> None:
    steps, said = WRONG[case]
    with pytest.raises(DeclarationError, match=said) as error:
        bound(steps, "window_start", "window_end", "shop", "n", "amount")
    assert "test_results.py" in error.value.message or "publish" in error.value.message
