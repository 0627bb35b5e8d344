"""The pass of one worker, without Spark: what a task tells of its records, and what the driver makes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import tidemill
from support.builders import EVENTS, NOW, a_flow, a_table
from support.projects import an_event
from tidemill import Count, Pipeline
from tidemill.core.bind.binding import bind
from tidemill.core.bind.flow import Flow
from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.time.times import micros
from tidemill.engine.aggregate.branches import branch_out, branches_of
from tidemill.engine.aggregate.counting import Counter, Counts
from tidemill.engine.aggregate.native_found import _Told
from tidemill.engine.aggregate.native_pass import NativePass, unpacked
from tidemill.engine.aggregate.native_plan import left_to_spark_sql, native_pass
from tidemill.engine.aggregate.side_outputs import late_of, rejected_of
from tidemill.engine.read.blocks import Blocks
from tidemill.engine.read.typed_rows import DecodeBatches, EventTimes, checked

_TYPES = {"partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("us", "UTC"), "value": pa.binary()}
SCHEMA = pa.schema(list(_TYPES.items()))


def a_pass(flow: Flow, *, watermark: int = 0, **more: int) -> tuple[NativePass, Counter]:
    """The pass over the one input of a flow, whose event times are compared with a watermark in microseconds."""
    [source] = flow.inputs
    blocks = Blocks([OffsetRange(TopicPartition("t", 0), 0, 100)])
    decode = replace(DecodeBatches.anywhere(source), watermark=watermark, blocks=blocks)
    ways = branches_of(flow, source)
    branches, columns = [branch for branch, _ in ways], [field.name for field in decode.decoder.schema]
    counter = Counter(source, [0, 1], branches)
    text = branch_out(checked(source, EventTimes(earliest=0, latest=2**60)), columns, ways)
    return replace(native_pass(decode, text, branches, counter, tasks=1), **more), counter


def records(values: Sequence[bytes], *, partition: int = 0) -> pa.RecordBatch:
    count = len(values)
    columns = [[partition] * count, range(count), [0] * count, values]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def told(native: NativePass, *batches: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows that a task gives."""
    return [row for batch in native.of_task(iter(batches)) for row in batch.to_pylist()]


def counts_of(counter: Counter, rows: list[dict[str, Any]]) -> Counts:
    class Stream:
        pass

    stream: Any = Stream()
    stream.source, stream.counter = counter.source, counter
    return _Told.of(rows).counts(stream)


def aggregates(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for each in rows if each["what"] == "table:0" for row in unpacked(each["body"]).to_pylist()]


def test_input_without_a_record_counts_nothing() -> None:
    native, counter = a_pass(a_flow())
    assert told(native) == []
    found = counts_of(counter, [])
    assert str(found.account) == "read=0 aggregated=0 filtered=0 rejected=0 late=0 shed=0"
    assert (found.reached, found.refused_windows, found.late_rows, found.warned) == ({}, 0, 0, {})
    assert (found.rejected, found.late) == (rejected_of({}), late_of({}))


def test_late_rows_of_a_table_without_columns_are_told_with_none() -> None:
    native, counter = a_pass(a_flow(), watermark=micros(NOW + timedelta(hours=1)))
    rows = told(native, records([an_event(second) for second in range(4)]))
    assert {row["what"] for row in rows} == {"counts", "blocks", "late"}
    found = counts_of(counter, rows)
    assert (found.account.late, found.late_rows, found.late.num_rows) == (4, 4, 4)
    assert found.late["row"].to_pylist() == ["{}"] * 4
    assert found.stray_blocks[0] == 0b1111


@pytest.mark.parametrize("part", [1, 3, 7, 100])
def test_parts_of_a_task_give_what_it_gives_in_one(part: int) -> None:
    values = [an_event(n % 35) if n % 7 else b"{" for n in range(60)]
    whole, counter = a_pass(a_flow())
    native, _ = a_pass(a_flow(), part=part)
    once, often = told(whole, records(values)), told(native, records(values[:33]), records(values[33:]))
    assert sorted(map(repr, aggregates(often))) == sorted(map(repr, aggregates(once)))
    mine, other = counts_of(counter, often), counts_of(counter, once)
    assert (mine.account, mine.reached) == (other.account, other.reached)
    assert sum(row["n__value"] for row in aggregates(often)) == mine.account.aggregated == 51
    assert [r["value"] for r in mine.rejected.to_pylist()] == [b"{"] * 9


def test_task_with_more_side_outputs_than_it_may_hold_brings_none_and_says_where_they_are() -> None:
    native, counter = a_pass(a_flow(), held=100, part=2)
    found = counts_of(counter, told(native, records([b"{" * 30] * 20)))
    assert (found.account.rejected, found.rejected.num_rows) == (20, 0)
    assert found.stray_blocks[:3] == bytes([255, 255, 15])


def test_task_gives_up_with_one_line_and_nothing_else() -> None:
    native, _ = a_pass(a_flow(), most=10)
    [row] = told(native, records([an_event(1)]))
    [why] = unpacked(row["body"]).to_pylist()
    assert row["what"] == "refused"
    assert why["expected"]
    assert re.fullmatch(r"\d\d bytes of aggregates in one task", why["why"])


@pytest.mark.parametrize("fault", [FileNotFoundError(2, "No such file", "a.parquet"), pa.ArrowInvalid("cut\nLINE 2")])
def test_file_that_cannot_be_read_is_left_to_spark(fault: Exception) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield records([an_event(1)])
        raise fault

    native, _ = a_pass(a_flow())
    [row] = [r for b in native.of_task(batches()) for r in b.to_pylist()]
    [why] = unpacked(row["body"]).to_pylist()
    assert why["expected"]
    assert "\n" not in why["why"]


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("rows.window(Tumbling('1 s')).aggregate(n=Average('amount'))", ""),
        ("rows.window(Tumbling('1 s')).aggregate(n=Sum('amount * 0.5D'))", ""),
        ("rows.window(Tumbling('1 s')).aggregate(n=CountIf('upper(user) = user'))", "UPPER(user)"),
        ("rows.filter('amount / 2.0 > 1').window(Tumbling('1 s')).aggregate(n=Count())", "amount / 2.0"),
        ("rows.filter('amount / 2 > 0.5').window(Tumbling('1 s')).aggregate(n=Count())", ""),
        ("rows.window(Calendar('day', zone='UTC')).aggregate(n=Count())", "TO_UTC_TIMESTAMP("),
        (
            "rows.window(TumblingBuffer(CountPolicy(2))).aggregate(n=Count())",
            "counts: rows are published one by one",
        ),
        ("rows.window(Session('1 s')).aggregate(n=Count())", ""),
        ("rows.aggregate(n=Count())", ""),
    ],
)
def test_what_keeps_a_pipeline_from_the_workers_is_said(does: str, reason: str) -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        rows = pipeline.read("t", contract="events", event_time="ts")
        made = eval(does, {**vars(tidemill), "rows": rows})
        made.publish("counts", contract="counts")
    kinds = {"window_start": Scalar.TIMESTAMP, "window_end": Scalar.TIMESTAMP}
    columns = [f.name for f in a_table("counts", "window_start", "window_end", "n").fields]
    if does.startswith("rows.aggregate") or "Buffer" in does:
        columns = ["n"]
    of = Scalar.DOUBLE if "Average" in does or "Sum" in does else Scalar.LONG
    fields = tuple(Field(name=c, type=kinds.get(c, of)) for c in columns)
    contracts = {"events": EVENTS, "counts": Contract(name="counts", version="1", fields=fields)}
    assert left_to_spark_sql(bind(pipeline.spec, contracts)).startswith(reason)
    assert bool(left_to_spark_sql(bind(pipeline.spec, contracts))) == bool(reason)


def test_inputs_that_are_patterns_are_looked_at_before_they_have_topics() -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        rows = pipeline.read(pattern="t.*", contract="events", event_time="ts").filter("upper(user) = user")
        rows.aggregate(n=Count()).publish("counts", contract="counts")
    counts = Contract(name="counts", version="1", fields=(Field(name="n", type=Scalar.LONG),))
    assert left_to_spark_sql(bind(pipeline.spec, {"events": EVENTS, "counts": counts})).startswith("UPPER(user)")
