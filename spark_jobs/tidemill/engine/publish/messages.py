"""Published rows as messages: JSON objects, which are encoded where the rows are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.sinks import Sink
from tidemill.engine.storage.row_writers import Encode
from tidemill.engine.storage.staged_rows import StagedRows

_DDL = "`key` binary, `value` binary"


def messages(sink: Sink, staged: StagedRows) -> Iterator[tuple[bytes | None, bytes]]:
    """Key and value of each row: its key columns, and the columns of its contract. A row without keys has no key.

    Times are RFC 3339 in UTC, decimals text, bytes base64, maps lists of pairs; NaN and infinite numbers are null.
    """
    encode = _encoding(sink.contract.columns, sink.row_key)
    for key, value in staged.writer.encoded(staged.rows, encode, _DDL):
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
