"""From records to typed rows: decode, check the event time, check the row rules. Nothing is dropped here.

A row has the columns of its contract and hidden ones: `_topic`, `_partition`, `_offset`, `_timestamp` say where it
comes from; `_time` is its event time in microseconds and `_behind` how far that is behind the watermark; `_error` is
the decoder's complaint, `_broken` the row rules it breaks as a bit mask; `_raw` is the record's value where a rejection
may need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from tidemill.core.flow import Input
from tidemill.core.row_rules import mask_expression, rejecting_bits
from tidemill.core.schema import spark_type
from tidemill.core.sql import quoted, renamed, select, text_literal
from tidemill.engine.decode import Decoder, decoder_for
from tidemill.engine.query import ROWS
from tidemill.tables.arrow_types import schema_fields

NO_EVENT_TIME = "no event time"
FAR_FUTURE = "event time in the future"
_FURTHEST = 2**62
_Batches = Iterator[pa.RecordBatch]
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
        pa.field("_error", pa.string()),
        pa.field("_raw", pa.binary()),
    ]
)


def decoded(records: DataFrame, source: Input, *, latest: int, watermark: int) -> DataFrame:
    """Every record as a row, good or bad, decoded in the same pass as whatever follows.

    `latest` is the last event time, in microseconds, that is not too far in the future.
    """
    decode = DecodeBatches(
        decoder=decoder_for(source.contract),
        event_time=source.event_time,
        latest=latest,
        watermark=watermark,
        keep_raw=rejecting_bits(source.contract.row_rules) != 0,
    )
    ddl = ", ".join(f"{quoted(f.name)} {spark_type(f.type)}" for f in schema_fields(decode.schema))
    return records.mapInArrow(_plain(decode), ddl)


def _plain(decode: DecodeBatches) -> Callable[[_Batches], _Batches]:
    # Spark calls a function; an object with __call__ is refused by its signature check.
    def decode_batches(batches: _Batches) -> _Batches:
        return decode.run(batches)

    return decode_batches


def checked(source: Input) -> str:
    """A statement over decoded rows, which adds `_topic`, `_broken` and `_rejected`: the contract refuses the row.

    A predicate that is null is not broken; rows that could not be decoded break no rule.
    """
    rules = source.contract.row_rules
    mask = f"CASE WHEN _error IS NULL THEN {mask_expression(rules)} ELSE 0L END"
    found = select(["*", renamed(text_literal(source.topic), "_topic"), renamed(mask, "_broken")], ROWS)
    return select(["*", f"_error IS NOT NULL OR _broken & {rejecting_bits(rules)}L != 0 AS _rejected"], found)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeBatches:
    """Decodes Arrow batches of records inside Spark's Python workers.

    `latest` is the last event time, in microseconds, that is not too far in the future; `watermark` is what `_behind`
    counts from. `keep_raw` keeps the value of good records too, for rules that are checked later.
    """

    decoder: Decoder
    event_time: str | None
    latest: int
    watermark: int
    keep_raw: bool

    @property
    def schema(self) -> pa.Schema:
        """The columns of what comes out."""
        return pa.schema([*_HEAD, *self.decoder.schema, *_TAIL])

    def run(self, batches: _Batches) -> _Batches:
        """One batch out for each batch in."""
        for batch in batches:
            yield self.decode(batch)

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of one batch of records."""
        values = batch.column(3)
        decoded = self.decoder.decode(values)
        timestamps = batch.column(2).cast(_HEAD.field(2).type)
        times = decoded.columns.column(self.event_time) if self.event_time else timestamps
        time = times.cast(pa.int64())
        errors = self._time_errors(time, decoded.errors)
        raw = values if self.keep_raw else pc.if_else(pc.is_null(errors), None, values)
        tail = [time, self._behind(time), errors, raw]
        columns = [batch.column(0), batch.column(1), timestamps, *decoded.columns.columns, *tail]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _behind(self, time: pa.Int64Array) -> pa.Int64Array:
        # No event time comes near the bounds, so that the difference fits 64 bits also before 1970.
        return pc.subtract(min(max(self.watermark, -_FURTHEST), _FURTHEST), time)

    def _time_errors(self, time: pa.Int64Array, errors: pa.StringArray) -> pa.StringArray:
        missing = pc.is_null(time)
        future = pc.fill_null(pc.greater(time, self.latest), False)
        if not pc.any(future).as_py() and not pc.any(pc.and_(missing, pc.is_null(errors))).as_py():
            return errors
        found = pc.case_when(pc.make_struct(missing, future), NO_EVENT_TIME, FAR_FUTURE)
        return pc.coalesce(errors, found.cast(pa.string()))
