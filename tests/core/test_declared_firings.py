"""What tables of firings cannot be: keys that firings share, retractions that cannot be exact, parts without effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from support.builders import EVENTS, a_table
from tidemill import (
    AfterAny,
    AfterCount,
    AfterEach,
    AfterWatermark,
    Count,
    CountPolicy,
    DefaultTrigger,
    DeltaEvictor,
    DeltaPolicy,
    Global,
    HeavyHitters,
    Max,
    Never,
    Pipeline,
    PunctuationPolicy,
    Quantiles,
    RecordWindows,
    Repeatedly,
    Session,
    SlidingBuffer,
    TimePolicy,
    Tumbling,
    TumblingBuffer,
)
from tidemill.core.bind.binding import bind
from tidemill.core.contract.schema import Array, DataType, Field, Scalar
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.errors import DeclarationError

RETRACTING = {"accumulation": "accumulating_and_retracting", "operation": "operation"}
EACH = {"trigger": Repeatedly(AfterCount(1)), "accumulation": "discarding"}
BY_CLOCK = TimePolicy("1 minute", clock="batch_clock")
COUNTED = TumblingBuffer(CountPolicy(2))


def bound(
    window: Any,
    *,
    key: tuple[str, ...] = (),
    by: str = "user",
    of: Aggregate | None = None,
    more: DataType = Scalar.BOOLEAN,
    windowed: dict[str, Any] | None = None,
    **said: Any,
) -> None:
    """Declare a table of firings whose contract has this primary key; records have a column `extra` of type `more`."""
    with Pipeline("p", every="1 minute") as pipeline:
        events = pipeline.read("t", contract="events", event_time="ts").key_by(by)
        events.window(window, **windowed or {}).aggregate(n=of or Count()).publish("out", contract="out", **said)
    bounds = () if isinstance(window, TumblingBuffer | SlidingBuffer | Global) else ("window_start", "window_end")
    if isinstance(window, TumblingBuffer) and isinstance(window.flush, TimePolicy):
        bounds = ("window_start", "window_end")
    told = (said[name] for name in ("timing", "index", "last", "operation") if name in said)
    table = replace(a_table("out", *bounds, by, "n", *told), primary_key=key)
    kinds = {"operation": Scalar.STRING, "last": Scalar.BOOLEAN, by: Scalar.STRING}
    table = replace(table, fields=tuple(replace(f, type=kinds.get(f.name, f.type)) for f in table.fields))
    records = replace(EVENTS, fields=(*EVENTS.fields, Field(name="extra", type=more)))
    bind(pipeline.spec, {"events": records, "out": table})


HOURS = Tumbling("1 hour")


@pytest.mark.parametrize(
    ("window", "key", "said", "fix"),
    [
        (COUNTED, ("user",), {}, "remove primaryKey: the firings of a buffer"),
        (SlidingBuffer(CountPolicy(2)), ("user",), {}, "remove primaryKey"),
        (TumblingBuffer(BY_CLOCK), ("user",), {}, "set primaryKey: true at window_start as well"),
        (RecordWindows("1 minute"), ("window_start",), {}, "set primaryKey: true at user as well"),
        (HOURS, ("window_start", "user"), EACH, 'index="nth", and set primaryKey: true at nth as well'),
        (HOURS, ("window_start", "user"), {**EACH, "index": "n_th"}, "set primaryKey: true at n_th as well"),
        (HOURS, ("user", "n_th"), {**EACH, "index": "n_th"}, "set primaryKey: true at window_start as well"),
        (
            HOURS,
            ("window_start", "user", "n_th"),
            {**EACH, **RETRACTING, "index": "n_th"},
            "set primaryKey: true at operation as well",
        ),
        (HOURS, ("user",), {"trigger": AfterWatermark()}, "set primaryKey: true at window_start as well"),
        (
            Session("1 minute"),
            ("window_start", "user"),
            {"trigger": AfterAny(AfterCount(9)), "accept_loss": True},
            "at nth as well",
        ),
    ],
)
def test_a_primary_key_that_firings_share_is_refused(
    window: Any, key: tuple[str, ...], said: dict[str, Any], fix: str
) -> None:
    with pytest.raises(DeclarationError, match="would agree in it") as refused:
        bound(window, key=key, **said)
    assert fix in refused.value.fix
    bound(window, **said)


@pytest.mark.parametrize(
    ("window", "key", "said"),
    [
        (COUNTED, ("user", "n"), {}),
        (TumblingBuffer(BY_CLOCK), ("window_start", "user"), {}),
        (RecordWindows("1 minute"), ("window_end", "user"), {}),
        (HOURS, ("window_start", "user"), {"trigger": AfterWatermark()}),
        (HOURS, ("window_start", "user", "n_th"), {**EACH, "index": "n_th"}),
        (HOURS, ("window_start", "user", "n_th", "operation"), {**EACH, **RETRACTING, "index": "n_th"}),
        (Session("1 minute"), ("window_start", "user"), {"trigger": Never()}),
    ],
)
def test_a_primary_key_that_tells_firings_apart_is_taken(
    window: Any, key: tuple[str, ...], said: dict[str, Any]
) -> None:
    bound(window, key=key, **said)


@pytest.mark.parametrize("of", [Quantiles("amount"), HeavyHitters("user")], ids=["quantiles", "often"])
def test_what_differs_each_time_cannot_be_taken_back(of: Aggregate) -> None:
    with pytest.raises(DeclarationError, match=r"another value each time.*need not be equal to it") as refused:
        bound(HOURS, of=of, **{**EACH, **RETRACTING})
    assert 'accumulation="accumulating_and_replacing"' in refused.value.fix


@pytest.mark.parametrize("first", [Never(), Repeatedly(AfterCount(2)), DefaultTrigger()], ids=str)
@pytest.mark.parametrize("inside", [False, True])
def test_a_trigger_that_never_has_its_turn_is_refused(first: Any, inside: bool) -> None:
    trigger: Any = AfterEach(first, AfterCount(3))
    with pytest.raises(DeclarationError, match='in AfterEach, "after 3 records" has its turn when') as refused:
        bound(HOURS, trigger=Repeatedly(trigger) if inside else trigger, accumulation="discarding")
    assert "leave out what comes after it" in refused.value.fix


@pytest.mark.parametrize("inside", [False, True])
def test_a_trigger_for_late_records_needs_a_window_that_ends(inside: bool) -> None:
    trigger: Any = AfterWatermark(late=AfterCount(1))
    said = {"trigger": Repeatedly(trigger) if inside else trigger, "accumulation": "discarding"}
    with pytest.raises(DeclarationError, match=r'late="after 1 record" is about .* never ends'):
        bound(Global(), **said)
    bound(HOURS, **said)


@pytest.mark.parametrize(
    ("window", "by", "windowed"),
    [
        (TumblingBuffer(DeltaPolicy("amount", 2)), "amount", {}),
        (HOURS, "amount", {"evictor": DeltaEvictor("amount", 2)}),
        (TumblingBuffer(PunctuationPolicy("extra")), "extra", {}),
    ],
)
def test_a_policy_cannot_look_at_a_key(window: Any, by: str, windowed: dict[str, Any]) -> None:
    said = {"trigger": AfterWatermark()} if window is HOURS else {}
    with pytest.raises(DeclarationError, match=f"`{by}` is what windows look at and a key as well") as refused:
        bound(window, by=by, windowed=windowed, **said)
    assert f"leave `{by}` out of .key_by" in refused.value.fix


@pytest.mark.parametrize(
    ("kind", "expression"),
    [
        (Scalar.STRING, "try_cast(extra AS DOUBLE)"),
        (Scalar.TIMESTAMP, "unix_micros(extra)"),
        (Scalar.DATE, "unix_date(extra)"),
        (Scalar.BOOLEAN, "IF(extra, 1, 0)"),
        (Scalar.BINARY, "octet_length(extra)"),
        (Array(Scalar.LONG), "size(extra)"),
    ],
)
def test_a_column_that_is_no_number_is_converted_by_its_type(kind: DataType, expression: str) -> None:
    with pytest.raises(DeclarationError, match="the policy looks at `extra`") as refused:
        bound(TumblingBuffer(DeltaPolicy("extra", 2)), more=kind)
    assert f'.with_columns(extra_="{expression}")' in refused.value.fix
    with Pipeline("p", every="1 minute") as pipeline:
        events = pipeline.read("t", contract="events").with_columns(extra_=expression)
        buffers = events.window(TumblingBuffer(DeltaPolicy("extra_", 2)))
        buffers.aggregate(n=Max("amount")).publish("out", contract="out")
    records = replace(EVENTS, fields=(*EVENTS.fields, Field(name="extra", type=kind)))
    bind(pipeline.spec, {"events": records, "out": a_table("out", "n")})
