"""Published rows as messages: JSON objects, which are encoded where the rows are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.sinks import RowSink, Sink, WindowedSink
from tidemill.engine.publish.sink_rows import SinkRows
from tidemill.engine.storage.row_writers import Encode
from tidemill.engine.storage.staged_rows import StagedRows

_DDL = "`key` binary, `value` binary"


def messages(item: SinkRows) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Key and value of each row: its key columns, and the columns of its contract. A row without keys has no key.

    Rows that are removed come first, without a value; then all others in the order of `_order`. Firings have the key
    that they are about and, if they update rows, their window. A row without a key cannot be removed. Times are RFC
    3339 in UTC, decimals text, bytes base64, maps lists of pairs; NaN and infinite numbers are null.
    """
    sink, columns = item.sink, item.sink.contract.columns
    row_key = sink.row_key
    if isinstance(sink, FiringSink) and not sink.replaces:
        row_key = tuple(key for key in sink.keys if key in columns)
    if item.gone is not None and row_key:
        for key, _ in _encoded(item.gone, row_key, row_key, ()):
            yield key, None
    yield from _encoded(item.staged, columns, row_key, _order(sink))


def _order(sink: Sink) -> tuple[str, ...]:
    """The columns by which rows are sent: windows by their start, firings of a window by their index, if they have one.

    "delete" comes before "insert", so what is taken back comes before what replaces it.
    """
    match sink:
        case WindowedSink(start=start):
            found: tuple[str | None, ...] = (start,)
        case FiringSink(start=start, told=told):
            found = (start, told.index, told.operation)
        case RowSink():
            found = ()
    return tuple(column for column in found if column in sink.contract.columns)


def _encoded(
    staged: StagedRows, columns: Sequence[str], row_key: Sequence[str], order: Sequence[str]
) -> Iterator[tuple[bytes | None, bytes]]:
    for key, value in staged.writer.encoded(staged.rows, _encoding(columns, row_key), _DDL, order):
        yield None if key is None else bytes(key), bytes(value)


def _encoding(columns: Sequence[str], key: Sequence[str]) -> Encode:
    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        json = msgspec.json.Encoder()
        for batch in batches:
            rows = batch.select(columns).to_pylist()
            keys = [json.encode({c: row[c] for c in key}) if key else None for row in rows]
            yield pa.record_batch(
                {"key": pa.array(keys, pa.binary()), "value": pa.array(map(json.encode, rows), pa.binary())}
            )

    return encode
