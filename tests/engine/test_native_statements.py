"""Merging in the driver: the same rows, types and nulls as Spark gives, or else nothing, so that Spark does it."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import datasketches
import pyarrow as pa
import pytest

from support.builders import EVENTS
from tidemill import (
    ApproxDistinct,
    Average,
    Count,
    CountIf,
    Custom,
    First,
    Max,
    Min,
    Pipeline,
    Quantiles,
    Sliding,
    StdDev,
    Sum,
    Tumbling,
)
from tidemill.core.bind.binding import bind
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import Array, DataType, Field, Object, Scalar
from tidemill.core.contract.schema import Decimal as DecimalType
from tidemill.core.declare.triples import Aggregate
from tidemill.core.sql.text import quoted
from tidemill.core.time.times import moment
from tidemill.core.time.window_expressions import BOUNDS
from tidemill.engine.aggregate.node_sql import merged_nodes
from tidemill.engine.aggregate.window_sql import folded_state, left_to_spark, merged_windows
from tidemill.engine.native.statement import NotComputed, computed, run
from tidemill.engine.native.translation import Translation, translated
from tidemill.engine.spark.query import ROWS, query
from tidemill.tables.arrow_types import arrow_schema, schema_fields

SECOND, LARGEST = 1_000_000, 2**63 - 1
LONG, INTEGER, STRING, BOOLEAN, BINARY = Scalar.LONG, Scalar.INTEGER, Scalar.STRING, Scalar.BOOLEAN, Scalar.BINARY
START = datetime(2026, 1, 1, tzinfo=UTC)

AGGREGATES: Mapping[str, tuple[Aggregate, DataType]] = {
    "rows": (Count(), LONG),
    "few": (CountIf("amount > 1"), LONG),
    "total": (Sum("amount"), LONG),
    "total_or_null": (Sum("amount", overflow="null"), LONG),
    "total_as_decimal": (Sum("amount"), DecimalType(30, 0)),
    "total_as_cents": (Sum("amount"), DecimalType(12, 2)),
    "prices": (Sum("price"), DecimalType(18, 2)),
    "fine": (Sum("fine"), DecimalType(28, 9)),
    "fine_or_null": (Sum("fine", overflow="null"), DecimalType(28, 9)),
    "amount_in_cents": (Sum("amount"), DecimalType(28, 9)),
    "least": (Min("code"), INTEGER),
    "codes": (Sum("code"), DecimalType(20, 0)),
    "greatest": (Max("code"), LONG),
    "first_name": (Min("user"), STRING),
    "last_name": (Max("user"), STRING),
    "first_day": (Min("day"), Scalar.DATE),
    "last_time": (Max("ts"), Scalar.TIMESTAMP),
    "least_price": (Min("price"), DecimalType(10, 2)),
    "any": (Max("flag"), BOOLEAN),
    "first_bytes": (Min("raw"), BINARY),
    "last_bytes": (Max("raw"), BINARY),
    "users": (ApproxDistinct("user"), LONG),
    "mean": (Average("ratio"), Scalar.DOUBLE),
    "spread": (StdDev("ratio"), Scalar.DOUBLE),
    "least_ratio": (Min("ratio"), Scalar.DOUBLE),
}
KEYS: Mapping[str, DataType] = {
    "user": STRING,
    "Born": Scalar.TIMESTAMP,
    "day": Scalar.DATE,
    "flag": BOOLEAN,
    "raw": BINARY,
    "code": INTEGER,
    "price": DecimalType(10, 2),
    "strange `name`": LONG,
}
UNSURE = {f"{name}__value" for name, (aggregate, _) in AGGREGATES.items() if aggregate.over == ("amount",)}
NAMES = ("", "a", "A", "ä", "ß", "a\x00b", "it's", "\\", "😀", "\uffff", "Z" * 100)


def one_of(*values: Any) -> Callable[[random.Random], Any]:
    return lambda chance: chance.choice((None, *values))


VALUES: Mapping[DataType, Callable[[random.Random], Any]] = {
    STRING: one_of(*NAMES),
    BOOLEAN: one_of(True, False),
    BINARY: one_of(b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\x80\x00"),
    INTEGER: one_of(0, 1, -1, 2**31 - 1, -(2**31)),
    LONG: lambda c: c.choice((None, 0, 1, -1, 2**32, -(2**32) - 1, LARGEST, -LARGEST - 1, c.randrange(-9, 9))),
    Scalar.DATE: one_of(date(1, 1, 1), date(1969, 12, 31), date(2026, 1, 1), date(9999, 12, 31)),
    Scalar.TIMESTAMP: one_of(START, START - timedelta(days=30_000), START + timedelta(microseconds=1)),
    # Their sums are exact in any order.
    Scalar.DOUBLE: one_of(0.0, 0.5, -1.25, 2.0**20),
    DecimalType(18, 9): one_of(Decimal("1.123456789"), Decimal("-999999999.999999999"), Decimal("0.000000001")),
    DecimalType(10, 2): one_of(Decimal("0.00"), Decimal("0.05"), Decimal("-0.05"), Decimal("99999999.99")),
}
OF_COLUMN = {"amount": LONG, "ratio": Scalar.DOUBLE, "fine": DecimalType(18, 9), "ts": Scalar.TIMESTAMP, **KEYS}


def a_sink(
    window: Any, aggregates: Mapping[str, tuple[Aggregate, DataType]] = AGGREGATES, **types: DataType
) -> WindowedSink:
    """A table with keys and aggregates of many types."""
    bounds = {"window_start": Scalar.TIMESTAMP, "window_end": Scalar.TIMESTAMP}
    columns = {**bounds, **{f"{k}": t for k, t in KEYS.items()}, **{n: t for n, (_, t) in aggregates.items()}}
    table = Contract(name="out", version="1", fields=tuple(Field(name=c, type=t) for c, t in columns.items()))
    read = Contract(
        name="events",
        version="1",
        format=EVENTS.format,
        fields=tuple(Field(name=c, type=t) for c, t in {**OF_COLUMN, **types}.items()),
    )
    with Pipeline("p", every="1 minute") as pipeline:
        events = pipeline.read("t", contract="events", event_time="ts", delay="0 s")
        grouped = events.key_by(*KEYS).window(window).aggregate(**{n: a for n, (a, _) in aggregates.items()})
        grouped.publish("out", contract="out")
    [sink] = bind(pipeline.spec, {"events": read, "out": table}).sinks
    assert isinstance(sink, WindowedSink)
    return sink


def types_of_state(sink: WindowedSink) -> dict[str, DataType]:
    """The columns of state, as Spark makes them for these aggregates."""
    found: dict[str, DataType] = {}
    for name, aggregate in sink.aggregates.items():
        column = getattr(aggregate, "expression", "*")
        of = OF_COLUMN.get(column, LONG) if isinstance(aggregate, Min | Max | Sum) else LONG
        summed = {DecimalType(10, 2): DecimalType(20, 2), DecimalType(18, 9): DecimalType(28, 9), INTEGER: LONG}
        wide = summed.get(of, of) if isinstance(aggregate, Sum) else of
        wide = BINARY if isinstance(aggregate, ApproxDistinct) else wide
        types = {"value": wide, "sum": Scalar.DOUBLE, "squares": Scalar.DOUBLE}
        found |= {f"{name}__{part}": types.get(part, LONG) for part in aggregate.triple.partial}
    return found


@lru_cache
def a_sketch(values: int, first: int) -> bytes:
    """As `hll_sketch_agg` makes it: a list, then a set, then buckets."""
    sketch = datasketches.hll_sketch(12, datasketches.tgt_hll_type.HLL_8)
    for value in range(values):
        sketch.update(str(value + first * 1_000))
    return bytes(sketch.serialize_updatable())


def state_of(aggregate: Aggregate, chance: random.Random) -> Iterator[Any]:
    """The state of some values, as its columns hold it; older rows have no halves of a sum."""
    if isinstance(aggregate, ApproxDistinct):
        yield None if chance.random() < 0.1 else a_sketch(chance.choice((0, 1, 5, 300, 5_000)), chance.randrange(3))
        return
    if isinstance(aggregate, Average | StdDev):
        ratios = [v for v in (VALUES[Scalar.DOUBLE](chance) for _ in range(chance.randrange(4))) if v is not None]
        told = {"sum": sum(ratios), "squares": sum(r * r for r in ratios)} if ratios else {}
        yield from ({**told, "n": len(ratios)}.get(part) for part in aggregate.triple.partial)
        return
    if not isinstance(aggregate, Sum):
        of = OF_COLUMN[aggregate.expression] if isinstance(aggregate, Min | Max) else None
        yield chance.randrange(5) if of is None else VALUES[of](chance)
        return
    of = OF_COLUMN[aggregate.expression]
    values = [v for v in (VALUES[of](chance) for _ in range(chance.randrange(4))) if v is not None]
    total = sum(values) if values else None
    whole = [v if of is LONG else int(v) for v in values]
    fits = total is None or isinstance(of, DecimalType) or -LARGEST - 1 <= total <= LARGEST
    low = sum(v & 0xFFFFFFFF for v in whole)
    old = fits and chance.random() < 0.2
    halves = (None, None) if not values or old else (sum(v >> 32 for v in whole) + (low >> 32), low & 0xFFFFFFFF)
    yield from (total if fits else None, len(values), *halves)


def rows_of(sink: WindowedSink, seed: int, *, count: int = 600) -> pa.Table:
    """State of a few panes and keys, with everything that the statements ask of rows."""
    chance = random.Random(seed)
    keys = [tuple(VALUES[t](chance) for t in KEYS.values()) for _ in range(count // 4)]
    types: dict[str, DataType] = {"pane_day": Scalar.DATE, "pane_start": Scalar.TIMESTAMP, **KEYS}
    types |= {**types_of_state(sink), **dict.fromkeys(("_touched", "_certain"), BOOLEAN), "_level": INTEGER}
    types |= dict.fromkeys(("_start", "_before", "_after", "_refused_until", "_again_until"), LONG)
    rows = []
    for _ in range(count):
        pane = chance.randrange(-3, 12) * SECOND
        state = [value for a in sink.aggregates.values() for value in state_of(a, chance)]
        flags = (chance.random() < 0.5, chance.random() < 0.5, chance.randrange(3), chance.randrange(3) * SECOND)
        bounds = (2 * SECOND, 8 * SECOND, 0, 2 * SECOND)
        rows.append((moment(pane).date(), moment(pane), *chance.choice(keys), *state, *flags, *bounds))
    schema = arrow_schema(Field(name=n, type=t) for n, t in types.items())
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def statements(sink: WindowedSink, rows: pa.Table) -> Mapping[str, tuple[str, pa.Table]]:
    """Every statement that merges state, and its rows."""
    types, state = schema_fields(rows.schema), rows.drop_columns(["_level", "_start", "_certain"])
    found = {
        "windows": (merged_windows(ROWS, sink), state),
        "panes in one": (folded_state(ROWS, sink, types, ["pane_day", "pane_start"]), state),
    }
    return found | ({"nodes": (merged_nodes(ROWS, sink, types), rows)} if sink.merges_ahead else {})


def in_order(table: pa.Table) -> list[tuple[Any, ...]]:
    known = [n for n in table.column_names if n.removeprefix("_node_") not in UNSURE]
    rows = sorted(table.to_pylist(), key=lambda row: repr([row[n] for n in known]))
    return [tuple(row.values()) for row in rows]


def as_estimates(spark: Any, table: pa.Table) -> pa.Table:
    """The rows with the estimate that Spark reads from each sketch: equal sketches may be written by other bytes."""
    sketches = {f"{prefix}users__value" for prefix in ("", "_node_")}.intersection(table.column_names)
    texts = {name: f"hll_sketch_estimate(hll_union({name}, {name}))" for name in sketches}
    columns = ", ".join(f"{texts.get(name, quoted(name))} AS {quoted(name)}" for name in table.column_names)
    return query(spark, f"SELECT {columns} FROM {ROWS}", spark.createDataFrame(table)).toArrow()


def shown(table: pa.Table) -> Sequence[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in table.schema]


WINDOWS = {
    "tumbling": Tumbling("1 second"),
    "few panes": Sliding("3 seconds", "1 second", offset="500 ms"),
    "many panes": Sliding("20 seconds", "1 second"),
}
_REST = pytest.mark.long


@pytest.mark.spark
@pytest.mark.parametrize(
    ("window", "seed"),
    [pytest.param(w, n, marks=() if n == 0 and w != "few panes" else _REST) for w in WINDOWS for n in range(2)],
)
def test_driver_and_spark_merge_alike(spark: Any, window: str, seed: int) -> None:
    sink = a_sink(WINDOWS[window])
    for what, (statement, rows) in statements(sink, rows_of(sink, seed)).items():
        there, here = query(spark, statement, spark.createDataFrame(rows)).toArrow(), run(statement, rows)
        assert here is not None, (what, translated(statement, schema_fields(rows.schema)))
        assert shown(here) == shown(there), what
        assert len(in_order(there)) > 50, what
        there, here = as_estimates(spark, there), as_estimates(spark, here)
        for mine, of_spark in zip(in_order(here), in_order(there), strict=True):
            assert known_sums(mine, of_spark, here.column_names) == of_spark, what


def known_sums(row: tuple[Any, ...], of_spark: tuple[Any, ...], names: Sequence[str]) -> tuple[Any, ...]:
    """The row without the plain sum of integers, where Spark gives it up because it left 64 bits on the way.

    Whether it does depends on the order of rows. The halves beside it, which are exact, are what is published.
    """
    summed = {f"total{more}__value" for more in ("", "_or_null", "_as_decimal", "_as_cents")} | {
        "amount_in_cents__value"
    }
    lost = (n.removeprefix("_node_") in summed and s is None for n, s in zip(names, of_spark, strict=True))
    return tuple(None if gone else mine for gone, mine in zip(lost, row, strict=True))


@pytest.mark.spark
def test_sum_that_left_64_bits_on_the_way_is_the_same_however_the_rows_lie(spark: Any) -> None:
    sink = a_sink(Tumbling("1 second"), {n: AGGREGATES[n] for n in ("total", "total_or_null", "total_as_decimal")})
    for values in ([LARGEST, 1, -5], [1, LARGEST, LARGEST, -LARGEST], [-LARGEST - 1, -1]):
        rows = one_window(sink, values).drop_columns(["_level", "_start", "_certain"])
        statement = merged_windows(ROWS, sink)
        assert run(statement, rows) == query(spark, statement, spark.createDataFrame(rows)).toArrow()


@pytest.mark.spark
@pytest.mark.parametrize(("digits", "scale"), [(18, 9), (38, 8), (28, 18), (38, 18)])
def test_sum_of_decimals_keeps_every_digit(spark: Any, digits: int, scale: int) -> None:
    of, value = DecimalType(digits, scale), Decimal("1.123456789123456789").quantize(Decimal(1).scaleb(-scale))
    sink = a_sink(Tumbling("1 second"), {"x": (Sum("fine"), DecimalType(min(digits + 10, 38), scale))}, fine=of)
    state = {"x__value": of, "x__n": LONG, "x__high": LONG, "x__low": LONG, "_touched": BOOLEAN}
    types = {"pane_start": Scalar.TIMESTAMP, **KEYS, **state, **dict.fromkeys(BOUNDS, LONG)}
    there = {"pane_start": START, "x__value": value, "x__n": 1, "_touched": True, "_after": 2**62}
    row = {**dict.fromkeys(types), **dict.fromkeys(BOUNDS, 0), **there}
    rows = pa.Table.from_pylist([row], schema=arrow_schema(Field(name=n, type=t) for n, t in types.items()))
    statement = merged_windows(ROWS, sink)
    assert query(spark, statement, spark.createDataFrame(rows)).toArrow()["x"].to_pylist() == [value]
    assert (found := run(statement, rows)) is None or found["x"].to_pylist() == [value]


def one_window(sink: WindowedSink, values: Sequence[int]) -> pa.Table:
    """One window and key, with a row of state for each value."""
    rows = rows_of(sink, 0, count=len(values) * 4).slice(0, len(values))
    parts = {"value": values, "n": [1] * len(values), "high": [v >> 32 for v in values]}
    parts["low"] = [v & 0xFFFFFFFF for v in values]
    same: dict[str, Any] = {"pane_start": moment(5 * SECOND), "pane_day": moment(0).date()}
    same |= dict.fromkeys(KEYS)
    for number, field in enumerate(rows.schema):
        name, _, part = field.name.partition("__")
        column = parts[part] if part in parts and name in sink.aggregates else None
        if column is None and field.name in same:
            column = [same[field.name]] * len(values)
        if column is not None:
            rows = rows.set_column(number, field, pa.array(column, field.type))
    return rows


PRODUCT = Custom(partial={"l": "sum(ln(amount))"}, merge={"l": "sum({l})"}, finish="exp({l})")
FILLED = Custom(
    partial={"v": "hll_sketch_agg(user, 12)"}, merge={"v": "hll_union_agg({v})"}, finish="hll_sketch_estimate({v})"
)
LEFT_TO_SPARK: Mapping[str, tuple[Aggregate, DataType, str]] = {
    "sketches whose values are drawn": (Quantiles("amount"), Array(Scalar.DOUBLE), "KLL_MERGE_AGG_DOUBLE(`x__value`)"),
    "sketches that tell how they were filled": (FILLED, LONG, "HLL_SKETCH_ESTIMATE(`x__v`)"),
    "places in the log": (First("user"), STRING, "`x__value`, which is struct<`_offset`: bigint>"),
    "own functions": (PRODUCT, Scalar.DOUBLE, "EXP(`x__l`)"),
    "casts of dates": (Min("day"), Scalar.TIMESTAMP, "a cast of date to timestamp"),
}
STATE: Mapping[str, DataType] = {
    "sketches whose values are drawn": BINARY,
    "sketches that tell how they were filled": BINARY,
    "places in the log": Object((Field(name="_offset", type=LONG),)),
    "casts of dates": Scalar.DATE,
}


@pytest.mark.parametrize("name", LEFT_TO_SPARK)
def test_what_may_differ_is_left_to_spark_by_name(name: str) -> None:
    aggregate, of, reason = LEFT_TO_SPARK[name]
    sink = a_sink(Tumbling("1 second"), {"x": (aggregate, of)})
    state = dict.fromkeys((f"x__{part}" for part in aggregate.triple.partial), STATE.get(name, LONG))
    fields = tuple(Field(name=n, type=t) for n, t in {"pane_start": Scalar.TIMESTAMP, **KEYS, **state}.items())
    assert left_to_spark(sink, fields) == reason
    more = {"_touched": BOOLEAN, **dict.fromkeys(BOUNDS, LONG)}
    rows = arrow_schema((*fields, *(Field(name=n, type=t) for n, t in more.items()))).empty_table()
    assert run(merged_windows(ROWS, sink), rows) is None


def test_what_fails_in_the_driver_is_left_to_spark() -> None:
    rows = pa.table({"a": pa.array([LARGEST, 1], pa.int64())})
    assert run(f"SELECT sum(`a`) AS `a` FROM {ROWS}", rows) is None
    assert run(f"SELECT try_sum(`a`) AS `a` FROM {ROWS}", rows) == pa.table({"a": pa.array([None], pa.int64())})


@pytest.mark.parametrize("at", [0, 100_000, 249_999])
@pytest.mark.parametrize("text", ["`a` + 1L AS `a`, `t`", "CAST(`a` AS INT) AS `a`, `t`"])
def test_what_fails_after_many_rows_is_left_to_spark_as_well(text: str, at: int) -> None:
    count = 250_000
    numbers = [0] * count
    numbers[at] = LARGEST
    rows = pa.table({"a": pa.array(numbers, pa.int64()), "t": ["some text"] * count})
    found = translated(f"SELECT {text} FROM {ROWS}", schema_fields(rows.schema))
    assert isinstance(found, Translation), found
    with pytest.raises(NotComputed) as caught:
        computed(found, rows)
    assert caught.value.expected


def test_process_that_is_forked_merges_and_ends() -> None:
    program = f"""
import os, sys
import pyarrow as pa
from tidemill.engine.native.statement import run
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
found = run("SELECT sum(`a`) AS `x` FROM {ROWS}", pa.table({{"a": [1, 2]}}))
sys.exit(0 if found.to_pylist() == [{{"x": 3}}] else 1)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0
