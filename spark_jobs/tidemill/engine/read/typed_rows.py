"""From records to typed rows: decode, check the event time, check the row rules. Nothing is dropped here.

A row has the columns of its contract and hidden columns. `_topic`, `_partition`, `_offset` and `_timestamp` say which
record it comes from, `_block` in which part of the batch it is. `_time` is its event time in microseconds, `_behind`
how far that is behind the watermark. `_error` is the decoder's error, `_broken` a bit mask of the row rules that it
breaks; `_unmatched` has those of its bits that are about patterns. `_mark` is the watermark that the record tells, in
microseconds, if its input has an expression for it. `_behind_N` is there for each table of firings, with the number N,
that a backfill computes again: it counts from the watermark before the batch in which the record counts. `_raw` is the
record's value where `_held` is true: in every row of a second pass for side outputs, and in the first pass if the batch
is not large.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from tidemill.core.bind.flow import Flow, Input
from tidemill.core.bind.sinks import StatefulSink
from tidemill.core.contract.contract import Matches
from tidemill.core.contract.reasons import stored_reason
from tidemill.core.contract.row_rules import UNMATCHED, mask_expression, patterns_of, rejecting_bits
from tidemill.core.contract.schema import ddl
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.sql.text import renamed, select, text_literal
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.engine.read.blocks import Blocks, marked
from tidemill.engine.read.decode import Decoder, decoder_for
from tidemill.engine.read.segments import Segments
from tidemill.engine.spark.query import ROWS
from tidemill.tables.arrow_types import schema_fields
from tidemill.tables.matching import unmatched

NO_EVENT_TIME = "no event time"
FAR_FUTURE = "event time in the future"
TOO_EARLY = "event time too early: its windows would begin before year 1"
FAR_MARK = "watermark in the future"
EARLY_MARK = "watermark too early: its windows would begin before year 1"
MARK = "_mark"
_FURTHEST = 2**62
_YEAR_1 = micros(datetime.min.replace(tzinfo=UTC))
_HELD_RECORDS, _HELD_BYTES = 250_000, 16 * 2**20
"""The values of a batch of so many records are held in its first pass: so many bytes in each task."""

_Batches = Iterator[pa.RecordBatch]

Watermarks = Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], npt.NDArray[np.int64]]
"""Gives, for partitions and offsets of a topic, the watermarks by which their records are late or not."""

_HEAD = pa.schema(
    [
        pa.field("_partition", pa.int32()),
        pa.field("_offset", pa.int64()),
        pa.field("_timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
_TAIL = pa.schema(
    [
        pa.field("_time", pa.int64()),
        pa.field("_behind", pa.int64()),
        pa.field("_block", pa.int32()),
        pa.field("_error", pa.string()),
        pa.field("_raw", pa.binary()),
        pa.field("_held", pa.bool_()),
    ]
)
_UNMATCHED = pa.field(UNMATCHED, pa.int64())


def row_schema(decoder: Decoder, patterns: Collection[object], behind: Iterable[str] = ()) -> pa.Schema:
    """The columns of decoded rows, with or without `_unmatched`, and with those of `behind`."""
    more = [pa.field(name, pa.int64()) for name in behind]
    return pa.schema([*_HEAD, *decoder.schema, *_TAIL, *more, *([_UNMATCHED] if patterns else [])])


def decoded(records: DataFrame, decode: DecodeBatches) -> DataFrame:
    """Every record as a row, good or bad, decoded in the same pass as the steps that follow."""
    return records.mapInArrow(_plain(decode), ddl(schema_fields(decode.schema)))


def read_segments(session: SparkSession, segments: Segments, decode: DecodeBatches) -> DataFrame:
    """`decoded` for files that the workers read themselves."""
    return segments.frame(session, decode.run, ddl(schema_fields(decode.schema)))


def _plain(decode: DecodeBatches) -> Callable[[_Batches], _Batches]:
    # It must be a function: Spark's signature check refuses an object with __call__.
    def decode_batches(batches: _Batches) -> _Batches:
        return decode.run(batches)

    return decode_batches


def checked(source: Input, times: EventTimes) -> str:
    """A statement over decoded rows that adds `_topic`, `_broken` and `_rejected`: the contract rejects the row.

    A predicate that is null is not broken; rows that could not be decoded break no rule, but are rejected. `_mark` is
    only there if the input has an expression for it; rows that tell a watermark out of `times` are rejected.
    """
    rules, types = source.contract.row_rules, {field.name: field.type for field in source.contract.fields}
    mask = f"CASE WHEN _error IS NULL THEN {mask_expression(rules, types)} ELSE 0L END"
    found = select(["*", renamed(text_literal(source.topic), "_topic"), renamed(mask, "_broken")], ROWS)
    if source.watermark is not None:
        found = _marked(source.watermark, times, found, rejecting_bits(rules))
    return select(["*", f"_error IS NOT NULL OR _broken & {rejecting_bits(rules)}L != 0 AS _rejected"], found)


def _marked(expression: str, times: EventTimes, rows: str, rejecting: int) -> str:
    """A statement that adds `_mark`, and to `_error` why it rejects a row; rows that are rejected tell nothing."""
    good = f"_error IS NULL AND _broken & {rejecting}L = 0"
    told = select(["*", renamed(f"CASE WHEN {good} THEN unix_micros({expression}) END", MARK)], rows)
    far, early = (text_literal(stored_reason(reason)) for reason in (FAR_MARK, EARLY_MARK))
    wrong = f"CASE WHEN {MARK} > {times.latest}L THEN {far} WHEN {MARK} < {times.earliest}L THEN {early} END"
    return select(["* EXCEPT (_error)", renamed(f"coalesce(_error, {wrong})", "_error")], told)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimes:
    """The event times and told watermarks that are accepted, in microseconds since 1970, both ends included."""

    earliest: int
    latest: int

    @staticmethod
    def of(flow: Flow, source: Input, clock: datetime) -> EventTimes:
        """The bounds: not too far in the future, and no window and no watermark before year 1."""
        windows = [s for s in flow.sinks if isinstance(s, StatefulSink)]
        reach = max((2 * s.panes.longest + micros(s.allowed_lateness) for s in windows), default=0)
        earliest = _YEAR_1 + reach + micros(source.delay) + max(flow.lags.values(), default=0)
        return EventTimes(earliest=earliest, latest=micros(clock + flow.spec.future_tolerance))


ANY_TIME = EventTimes(earliest=BEGINNING, latest=END)
"""All event times and watermarks are accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeBatches:
    """Decodes Arrow batches of records, in Spark's Python workers or in this process.

    `_behind` counts from `watermark`, and each column named in `then` from the watermarks that it gives. `diverted` is
    the reason to reject every record, if there is one. `patterns` are the rules about texts, with their bits. `only` is
    a bitmap of the blocks to decode: records of other blocks are left out, and values are held. Without it, each task
    holds the first `held` bytes of values.
    """

    decoder: Decoder
    event_time: str | None
    times: EventTimes
    watermark: int
    blocks: Blocks
    only: bytes | None = None
    held: int = 0
    diverted: str | None = None
    patterns: tuple[tuple[int, Matches], ...] = ()
    then: Mapping[str, Watermarks] = field(default_factory=dict)

    @staticmethod
    def of(flow: Flow, source: Input, plan: BatchPlan) -> DecodeBatches:
        """How the records of an input are decoded in a batch."""
        return DecodeBatches(
            decoder=decoder_for(source.contract),
            event_time=source.event_time,
            times=EventTimes.of(flow, source, plan.clock),
            watermark=plan.lateness_watermark,
            blocks=Blocks(plan.ranges(source.topic)),
            held=_HELD_BYTES if plan.records <= _HELD_RECORDS else 0,
            patterns=patterns_of(source.contract.row_rules),
        )

    @staticmethod
    def anywhere(source: Input) -> DecodeBatches:
        """How records of an input are decoded, without a batch: all event times are accepted."""
        return DecodeBatches(
            decoder=decoder_for(source.contract),
            event_time=source.event_time,
            times=ANY_TIME,
            watermark=BEGINNING,
            blocks=Blocks(()),
            patterns=patterns_of(source.contract.row_rules),
        )

    @property
    def schema(self) -> pa.Schema:
        """The columns of the decoded rows."""
        return row_schema(self.decoder, self.patterns, self.then)

    def run(self, batches: _Batches) -> _Batches:
        """Decode batches of records; with `only`, batches without wanted records are left out."""
        left = self.held
        for batch in batches:
            blocks = self.blocks.of(batch.column(0), batch.column(1))
            if self.only is None:
                left -= batch.column(3).nbytes
                yield self.decode(batch, blocks, held=left >= 0)
            elif (wanted := marked(self.only, blocks)).any():
                yield self.decode(batch.filter(pa.array(wanted)), blocks[wanted], held=True)

    def whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of one batch of records, with the records' values."""
        return self.decode(batch, self.blocks.of(batch.column(0), batch.column(1)), held=True)

    def decode(self, batch: pa.RecordBatch, blocks: npt.NDArray[np.int32], *, held: bool) -> pa.RecordBatch:
        """The rows of one batch of records; `held` if they have the records' values."""
        values = batch.column(3)
        decoded = self.decoder.decode(values)
        timestamps = batch.column(2).cast(_HEAD.field(2).type)
        times = decoded.columns.column(self.event_time) if self.event_time else timestamps
        time = times.cast(pa.int64())
        errors = self._time_errors(time, decoded.errors)
        if self.diverted is not None:
            errors = pc.coalesce(errors, pa.array([self.diverted] * len(values), pa.string()))
        # Reasons are stored only with values.
        raw, errors = (values, _with_codes(errors)) if held else (pa.nulls(len(values), pa.binary()), errors)
        there = pa.array(np.full(len(values), held))
        tail = [time, self._behind(time), pa.array(blocks), errors, raw, there]
        tail += [self._behind_then(batch, time, watermarks) for watermarks in self.then.values()]
        tail += [self._unmatched(decoded.columns)] if self.patterns else []
        columns = [batch.column(0), batch.column(1), timestamps, *decoded.columns.columns, *tail]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _behind(self, time: pa.Int64Array) -> pa.Int64Array:
        return pc.subtract(bounded(self.watermark), time)

    @staticmethod
    def _behind_then(batch: pa.RecordBatch, time: pa.Int64Array, watermarks: Watermarks) -> pa.Int64Array:
        partitions, offsets = (batch.column(at).cast(pa.int64()).to_numpy() for at in (0, 1))
        then = np.clip(watermarks(partitions, offsets), -_FURTHEST, _FURTHEST)
        return pc.subtract(pa.array(then), time)

    def _unmatched(self, rows: pa.RecordBatch) -> pa.Int64Array:
        """The bits of the patterns that each row breaks; a null breaks none."""
        bits = pa.array(np.zeros(len(rows), dtype=np.int64))
        for bit, rule in self.patterns:
            wrong = pc.fill_null(unmatched(rows.column(rule.column), rule.pattern), False)
            bits = pc.bit_wise_or(bits, pc.if_else(wrong, bit, 0))
        return bits

    def _time_errors(self, time: pa.Int64Array, errors: pa.StringArray) -> pa.StringArray:
        missing = pc.is_null(time)
        future = pc.fill_null(pc.greater(time, self.times.latest), False)
        early = pc.fill_null(pc.less(time, self.times.earliest), False)
        wrong = pc.or_(pc.or_(missing, future), early)
        if not pc.any(pc.and_(wrong, pc.is_null(errors))).as_py():
            return errors
        found = pc.case_when(pc.make_struct(missing, future, early), NO_EVENT_TIME, FAR_FUTURE, TOO_EARLY)
        return pc.coalesce(errors, found.cast(pa.string()))


def _with_codes(errors: pa.StringArray) -> pa.StringArray:
    if errors.null_count == len(errors):
        return errors
    texts = errors.dictionary_encode()
    coded = pa.array([stored_reason(text) for text in texts.dictionary.to_pylist()], pa.string())
    return pc.take(coded, texts.indices)


def bounded(watermark: int) -> int:
    """A watermark from which every event time can be subtracted in 64 bits: none comes near these bounds."""
    return min(max(watermark, -_FURTHEST), _FURTHEST)
