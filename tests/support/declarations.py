"""Declarations that use every operator, window, aggregate and check there is: what written identities are held to.

`everything` is frozen: its hashes and statements stand in fixtures that never change. What is added to the language
gets a pipeline of its own in `newer`.
"""

from __future__ import annotations

from typing import Any

from tidemill import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    ApproxDistinct,
    Average,
    Bitmap,
    BloomFilter,
    Calendar,
    Collect,
    Count,
    CountEvictor,
    CountIf,
    CountPolicy,
    Custom,
    DefaultTrigger,
    DeltaEvictor,
    DeltaPolicy,
    Distinct,
    First,
    Global,
    HeavyHitters,
    Last,
    Max,
    Min,
    Never,
    OrFinally,
    Pipeline,
    PunctuationPolicy,
    Quantiles,
    RecordWindows,
    Repeatedly,
    Session,
    Sliding,
    SlidingBuffer,
    StdDev,
    Sum,
    TimeEvictor,
    TimePolicy,
    Tumbling,
    TumblingBuffer,
    Variance,
)
from tidemill.core.contract.contract import (
    Between,
    Compare,
    Contract,
    ExtraFields,
    Format,
    LengthBetween,
    Matches,
    NotNull,
    OneOf,
    RowCountBetween,
    RowRule,
    Severity,
    TableRule,
    Unique,
)
from tidemill.core.contract.schema import Array, Decimal, Field, Object, Scalar
from tidemill.core.declare.aggregates import Aggregate

ORDERS = Contract(
    name="orders",
    version="1",
    format=Format.JSON,
    extra_fields=ExtraFields.REJECT,
    options={"timestamp": "epoch_ms"},
    fields=(
        Field(name="ts", type=Scalar.TIMESTAMP, required=True, description="when"),
        Field(name="shop", type=Scalar.STRING),
        Field(name="amount", type=Scalar.LONG),
        Field(name="price", type=Decimal(9, 2)),
        Field(name="items", type=Array(Object((Field(name="sku", type=Scalar.STRING, required=True),)))),
    ),
    row_rules=(
        RowRule(name="amount.minimum", predicate="`amount` >= 0", description="not negative"),
        RowRule(name="amount.maximum", predicate="`amount` <= 10", severity=Severity.WARNING),
    ),
)
LINES = Contract(
    name="lines", version="1", format=Format.TEXT, fields=(Field(name="line", type=Scalar.STRING, required=True),)
)
AGGREGATES: dict[str, Aggregate] = {
    "rows": Count(),
    "prices": Count("price"),
    "big": CountIf("amount > 5"),
    "amount": Sum("amount"),
    "least": Min("amount"),
    "most": Max("amount"),
    "mean": Average("amount"),
    "spread": Variance("amount"),
    "deviation": StdDev("amount"),
    "first": First("shop"),
    "last": Last("shop"),
    "about": ApproxDistinct("shop"),
    "closely": ApproxDistinct("shop", precision=14),
    "ranks": Quantiles("amount"),
    "median": Quantiles("amount", ranks=(0.5,)),
    "often": HeavyHitters("shop"),
    "oftener": HeavyHitters("shop", k=3, tracked=50),
    "shops": Distinct("shop"),
    "all": Collect("amount"),
    "product": Custom(partial={"logs": "sum(ln(amount))"}, merge={"logs": "sum({logs})"}, finish="exp({logs})"),
}
OFTEN = Array(Object((Field(name="item", type=Scalar.STRING), Field(name="count", type=Scalar.LONG))))
OF_TABLES = (
    NotNull(column="rows"),
    Unique(columns=("window_start", "shop")),
    Between(column="rows", minimum=1),
    Between(column="mean", minimum=0.5, maximum=9, exclusive_minimum=True, exclusive_maximum=True),
    OneOf(column="shop", values=("north", "south")),
    Matches(column="shop", pattern="[a-z]+"),
    LengthBetween(column="shop", minimum=1, maximum=9),
    RowCountBetween(maximum=1000),
    Compare(left="least", operator="<=", right="most"),
)


def a_table(name: str, *columns: str, rules: tuple[TableRule, ...] = ()) -> Contract:
    """A contract of a published table."""
    moments = dict.fromkeys(("window_start", "window_end", "shown_from"), Scalar.TIMESTAMP)
    texts = dict.fromkeys(("shop", "first", "last", "why", "operation"), Scalar.STRING)
    texts["is_last"] = Scalar.BOOLEAN
    doubles = dict.fromkeys(("mean", "spread", "deviation", "product"), Scalar.DOUBLE)
    lists = {"ranks": Array(Scalar.DOUBLE), "median": Array(Scalar.DOUBLE), "all": Array(Scalar.LONG)}
    bits = dict.fromkeys(("some", "many", "seen", "nearly"), Scalar.BINARY)
    kinds: dict[str, Any] = {**moments, **texts, **doubles, **lists, **bits, "often": OFTEN, "oftener": OFTEN}
    return Contract(
        name=name,
        version="1",
        fields=tuple(Field(name=c, type=kinds.get(c, Scalar.LONG)) for c in columns),
        primary_key=tuple(c for c in columns if c in ("window_start", "shown_from", "shop")),
        table_rules=rules,
    )


TABLES = (
    a_table(
        "all_of_them",
        "window_start",
        "window_end",
        "shop",
        *AGGREGATES,
        rules=tuple(TableRule(name=f"rule {n}", check=check) for n, check in enumerate(OF_TABLES)),
    ),
    a_table("hourly", "window_start", "window_end", "n"),
    a_table("rows", "shop", "amount", rules=(TableRule(name="w", check=OF_TABLES[1], severity=Severity.WARNING),)),
    a_table("texts", "shop"),
)
CONTRACTS = {c.name: c for c in (ORDERS, LINES, *TABLES)}


def everything() -> Pipeline:
    """A pipeline with every operator, window and aggregate of version 2 of the encoding, frozen: see `newer`."""
    with Pipeline("everything", every="1 minute", future_tolerance="30 minutes") as pipeline:
        orders = pipeline.read("de.orders", "fr.orders", contract="orders", event_time="ts", delay="10 seconds")
        more = pipeline.read(pattern="shop-.*", contract="orders", event_time="ts", start="latest")
        both = orders.filter("amount IS NOT NULL").union(more)
        parts = both.with_columns(amount="amount + 1", twice="amount * 2").split(big="amount > 5", other="shop = 'x'")
        parts["big"].key_by("shop").window(Sliding("1 hour", "10 minutes", offset="5 minutes")).aggregate(
            **AGGREGATES
        ).publish("all_of_them", contract="all_of_them", trigger="on_update", topic="sent")
        parts["other"].window(Tumbling("1 hour"), allowed_lateness="1 day").aggregate(n=Count()).publish(
            "hourly", contract="hourly"
        )
        routes = parts["rest"].split(kept="true", gone="false", default="none", overlap=True)
        routes["kept"].select("shop", "amount").publish("rows", contract="rows", topic="rows-sent")
        routes["gone"].discard()
        routes["none"].discard()
        lines = pipeline.read("lines", contract="lines")
        lines.with_columns(shop="line").select("shop").publish("texts", contract="texts")
    return pipeline


def _late_fields() -> Pipeline:
    with Pipeline("late_fields", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts")
        windows = orders.window(Tumbling("1 hour", offset="15 minutes"), start="shown_from", end=None)
        windows.aggregate(total=Sum("amount", overflow="null")).publish(
            "late_fields", contract="late_fields", timing="why"
        )
    return pipeline


def _calendar() -> Pipeline:
    with Pipeline("calendar", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts")
        days = orders.window(Calendar("day", "Europe/Berlin"))
        days.aggregate(n=Count()).publish("daily", contract="daily")
    return pipeline


def _totals() -> Pipeline:
    with Pipeline("totals", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts")
        orders.key_by("shop").aggregate(n=Count()).publish("so_far", contract="so_far")
    return pipeline


def _sessions() -> Pipeline:
    with Pipeline("sessions", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts")
        visits = orders.key_by("shop").window(Session("30 minutes"))
        visits.aggregate(n=Count()).publish("visits", contract="visits")
    return pipeline


def _buffers() -> Pipeline:
    with Pipeline("buffers", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts").with_columns(closes="amount = 0")
        by_shop = orders.key_by("shop")
        sliding = SlidingBuffer(CountPolicy(100), DeltaPolicy("amount", 5))
        by_shop.window(sliding).aggregate(n=Count()).publish("last_hundred", contract="last_hundred")
        by_shop.window(TumblingBuffer(PunctuationPolicy("closes"))).aggregate(n=Count()).publish(
            "closed", contract="closed"
        )
        clock = TimePolicy("1 minute", clock="batch_clock")
        each = orders.window(TumblingBuffer(clock, emit_empty=True)).aggregate(n=Count())
        each.publish("each_minute", contract="each_minute")
    return pipeline


def _watermark_of_another() -> Pipeline:
    with Pipeline("watermark_of_another", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts", watermark_of="everything")
        orders.window(Tumbling("1 hour")).aggregate(n=Count()).publish("follows", contract="follows")
    return pipeline


def _around_records() -> Pipeline:
    with Pipeline("around_records", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts")
        around = orders.key_by("shop").window(RecordWindows("10 minutes")).aggregate(n=Count())
        around.publish("around", contract="around")
    return pipeline


def _idle_keys() -> Pipeline:
    hundred, ten = CountPolicy(100), CountPolicy(10)
    with Pipeline("idle_keys", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts").key_by("shop")
        for name, buffer in (
            ("hundreds", TumblingBuffer(hundred, idle_timeout="1 day")),
            ("tens", SlidingBuffer(hundred, ten, idle_timeout="2 hours")),
        ):
            orders.window(buffer).aggregate(n=Count()).publish(name, contract=name)
    return pipeline


def _surplus_keys() -> Pipeline:
    with Pipeline("surplus_keys", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts").key_by("shop")
        for name, buffer in (
            ("few_hundreds", TumblingBuffer(CountPolicy(100), most_keys=10)),
            ("few_tens", SlidingBuffer(CountPolicy(10), idle_timeout="1 day", most_keys=20)),
        ):
            orders.window(buffer).aggregate(n=Count()).publish(name, contract=name)
    return pipeline


def _buffers_by_time() -> Pipeline:
    with Pipeline("buffers_by_time", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts").key_by("shop")
        for name, buffer in (
            ("sorted_hundreds", TumblingBuffer(CountPolicy(100), order="event_time")),
            ("sorted_tens", SlidingBuffer(CountPolicy(10), order="event_time")),
        ):
            orders.window(buffer).aggregate(n=Count()).publish(name, contract=name)
    return pipeline


def _triggers() -> Pipeline:
    early = AfterAny(AfterCount(10), AfterAll(AfterCount(5), AfterProcessingTime("1 minute")))
    late = AfterEach(AfterCount(1), Repeatedly(AfterCount(10)))
    told = {"timing": "why", "index": "nth", "last": "is_last", "operation": "operation"}
    mode = {"accumulation": "accumulating_and_retracting", "empty_on_time": False, "accept_loss": True}
    with Pipeline("triggers", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts")
        hours = orders.window(Tumbling("1 hour"), allowed_lateness="1 hour", evictor=CountEvictor(100, after=True))
        hours.aggregate(n=Count()).publish(
            "refined", contract="refined", trigger=AfterWatermark(early, late), **mode, **told
        )
        for name, evictor, trigger in (
            ("newest", TimeEvictor("1 minute", after=True), OrFinally(Repeatedly(AfterCount(9)), AfterWatermark())),
            ("rising", DeltaEvictor("amount", 2, after=True), Never()),
            ("plain", None, DefaultTrigger()),
        ):
            each = orders.window(Tumbling("1 hour"), evictor=evictor).aggregate(n=Count())
            each.publish(name, contract=name, trigger=trigger, accumulation="accumulating", accept_loss=True)
    return pipeline


def _updated_rows() -> Pipeline:
    with Pipeline("updated_rows", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts").key_by("shop")
        mode = {"trigger": Repeatedly(AfterProcessingTime("1 hour")), "accumulation": "accumulating_and_replacing"}
        orders.window(Global()).aggregate(n=Count()).publish("each_hour", contract="each_hour", **mode)
    return pipeline


def _told_watermarks() -> Pipeline:
    with Pipeline("told_watermarks", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", watermark="CASE WHEN amount < 0 THEN ts END")
        orders.window(Tumbling("1 hour")).aggregate(n=Count()).publish("told", contract="told")
    return pipeline


def _bits() -> Pipeline:
    with Pipeline("bits", every="1 minute") as pipeline:
        orders = pipeline.read("orders", contract="orders", event_time="ts").window(Global())
        orders.aggregate(
            some=Bitmap("amount"), many=Bitmap("amount", size=100_000),
            seen=BloomFilter("shop"), nearly=BloomFilter("shop", items=50_000, fpp=0.001),
        ).publish("bits", contract="bits")  # fmt: skip
    return pipeline


def _two_delays() -> Pipeline:
    """One topic, read with two delays."""
    with Pipeline("two_delays", every="1 minute") as pipeline:
        for table, delay in (("in_a_minute", "1 minute"), ("in_an_hour", "1 hour")):
            read = pipeline.read("orders", contract="orders", event_time="ts", delay=delay)
            read.window(Tumbling("1 minute")).aggregate(n=Count()).publish(table, contract=table)
    return pipeline


_NEWER = (
    *(_late_fields, _calendar, _totals, _sessions, _buffers, _triggers, _told_watermarks),
    *(_around_records, _watermark_of_another, _idle_keys, _surplus_keys, _updated_rows, _buffers_by_time, _two_delays),
    _bits,
)
NEWER_CONTRACTS = {
    **CONTRACTS,
    "late_fields": a_table("late_fields", "shown_from", "total", "why"),
    "daily": a_table("daily", "window_start", "window_end", "n"),
    **{name: a_table(name, "shop", "n") for name in ("so_far", "each_hour")},
    **{
        name: a_table(name, "shop", "n")
        for name in ("last_hundred", "closed", "hundreds", "tens", "few_hundreds", "few_tens")
    },
    **{name: a_table(name, "shop", "n") for name in ("sorted_hundreds", "sorted_tens")},
    "refined": a_table("refined", "window_start", "window_end", "n", "why", "nth", "is_last", "operation"),
    **{name: a_table(name, "window_start", "window_end", "n") for name in ("newest", "rising", "plain")},
    **{name: a_table(name, "window_start", "window_end", "n") for name in ("told", "follows")},
    **{name: a_table(name, "window_start", "window_end", "n") for name in ("in_a_minute", "in_an_hour")},
    "bits": a_table("bits", "some", "many", "seen", "nearly"),
    "each_minute": a_table("each_minute", "window_start", "window_end", "n"),
    **{name: a_table(name, "window_start", "window_end", "shop", "n") for name in ("visits", "around")},
}


def newer() -> tuple[Pipeline, ...]:
    """What was added after `everything`: a small pipeline each, with tables of its own, that is frozen, too.

    A new kind of window or aggregate, or a new field: a function as above, its line in `_NEWER`, and its table in
    `NEWER_CONTRACTS`. `python tests/core/newer.py` then adds what is written of it to `newer.json`.
    """
    return tuple(declared() for declared in _NEWER)
