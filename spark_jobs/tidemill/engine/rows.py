"""From records to typed rows: decode, check the event time, check the row rules. Nothing is dropped here.

A row has the columns of its contract and hidden ones: `_topic`, `_partition`, `_offset`, `_timestamp` say where it
comes from; `_time` is its event time in microseconds; `_error` is the decoder's complaint, `_broken` the row rules it
breaks as a bit mask; `_raw` is the record's value where a rejection may need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.core.contract import RowRule, Severity
from tidemill.core.errors import ContractError
from tidemill.core.flow import Input
from tidemill.core.schema import spark_type
from tidemill.core.times import micros
from tidemill.engine.arrow_types import schema_fields
from tidemill.engine.decode import Decoder, decoder_for

MAX_RULES = 62
NO_EVENT_TIME = "no event time"
FAR_FUTURE = "event time in the future"
_Batches = Iterator[pa.RecordBatch]
_HEAD = pa.schema(
    [
        pa.field("_partition", pa.int32()),
        pa.field("_offset", pa.int64()),
        pa.field("_timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
_TAIL = pa.schema([pa.field("_time", pa.int64()), pa.field("_error", pa.string()), pa.field("_raw", pa.binary())])


def typed_rows(records: DataFrame, source: Input, *, clock: datetime, future_tolerance: timedelta) -> DataFrame:
    """Every record as a row, good or bad, decoded in the same pass as whatever follows."""
    rules = source.contract.row_rules
    decoder = decoder_for(source.contract)
    decode = DecodeBatches(
        decoder=decoder,
        event_time=source.event_time,
        latest=micros(clock + future_tolerance),
        keep_raw=any(rule.severity is Severity.ERROR for rule in rules),
    )
    ddl = ", ".join(f"`{f.name}` {spark_type(f.type)}" for f in schema_fields(decode.schema))
    frame = records.select("partition", "offset", "timestamp", "value").mapInArrow(_plain(decode), ddl)
    return frame.select(
        F.lit(source.topic).alias("_topic"), "*", F.expr(broken_rules(source.contract.name, rules)).alias("_broken")
    )


def _plain(decode: DecodeBatches) -> Callable[[_Batches], _Batches]:
    # Spark calls a function; an object with __call__ is refused by its signature check.
    def decode_batches(batches: _Batches) -> _Batches:
        return decode.run(batches)

    return decode_batches


def broken_rules(contract: str, rules: tuple[RowRule, ...]) -> str:
    """An SQL expression, a BIGINT whose bit i is set when the row breaks rule i.

    A predicate that is null is not broken; rows that could not be decoded break no rule.

    Raises:
        ContractError: more rules than bits.
    """
    if len(rules) > MAX_RULES:
        raise ContractError(f"contract `{contract}` has {len(rules)} row rules, expected at most {MAX_RULES}")
    bits = [f"CASE WHEN NOT ({rule.predicate}) THEN {1 << i}L ELSE 0L END" for i, rule in enumerate(rules)]
    return f"CASE WHEN _error IS NULL THEN {' + '.join(bits)} ELSE 0L END" if bits else "0L"


def error_mask(rules: tuple[RowRule, ...]) -> int:
    """The bits of the rules that reject a row."""
    return sum(1 << i for i, rule in enumerate(rules) if rule.severity is Severity.ERROR)


def reasons_sql(rules: tuple[RowRule, ...]) -> str:
    """An SQL expression, an array of the texts why a row is rejected: the decoder's error, and every broken rule."""
    named = [f"CASE WHEN _broken & {1 << i}L != 0 THEN {sql_text(rule.name)} END" for i, rule in enumerate(rules)]
    return f"array_compact(array({', '.join(['_error', *named])}))"


def sql_text(value: str) -> str:
    """A text as a literal of Spark SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeBatches:
    """Decodes Arrow batches of records inside Spark's Python workers.

    `latest` is the last event time, in microseconds, that is not too far in the future. `keep_raw` keeps the value of
    good records too, for rules that are checked later.
    """

    decoder: Decoder
    event_time: str | None
    latest: int
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
        good = pc.is_null(errors)
        raw = values if self.keep_raw else pc.if_else(good, None, values)
        columns = [batch.column(0), batch.column(1), timestamps, *decoded.columns.columns, time, errors, raw]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _time_errors(self, time: pa.Int64Array, errors: pa.StringArray) -> pa.StringArray:
        missing = pc.is_null(time)
        future = pc.fill_null(pc.greater(time, self.latest), False)
        if not pc.any(future).as_py() and not pc.any(pc.and_(missing, pc.is_null(errors))).as_py():
            return errors
        found = pc.case_when(pc.make_struct(missing, future), NO_EVENT_TIME, FAR_FUTURE)
        return pc.coalesce(errors, found.cast(pa.string()))
