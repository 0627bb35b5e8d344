"""Events as rows of the ledger's table, and rows as events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake import DeltaTable

from tidemill.core.errors import LedgerDamaged
from tidemill.core.protocol.codec import encode, from_json, to_json
from tidemill.core.protocol.events import (
    FORMAT_VERSION,
    Audited,
    Cancelled,
    Claimed,
    Committed,
    Decided,
    Event,
    Forgotten,
    Planned,
    Superseded,
)

_KINDS: Mapping[str, type[Event]] = {
    "planned": Planned,
    "claimed": Claimed,
    "audited": Audited,
    "committed": Committed,
    "cancelled": Cancelled,
    "decided": Decided,
    "superseded": Superseded,
    "forgotten": Forgotten,
}
NAMES = {kind: name for name, kind in _KINDS.items()}
SCHEMA = pa.schema(
    [
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("format_version", pa.int32(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
        pa.field("pipeline", pa.string(), nullable=False),
        pa.field("batch_id", pa.int64(), nullable=False),
        pa.field("attempt", pa.int64(), nullable=False),
        pa.field("recorded_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("body", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An event with its place in the ledger."""

    sequence: int
    recorded_at: datetime
    event: Event


def row_of(sequence: int, pipeline: str, event: Event) -> pa.Table:
    """A table with one row: this event."""
    batch_id, attempt = (event.plan.batch_id, 1) if isinstance(event, Planned) else (event.batch_id, event.attempt)
    row = {
        "sequence": sequence,
        "format_version": FORMAT_VERSION,
        "event": NAMES[type(event)],
        "pipeline": pipeline,
        "batch_id": batch_id,
        "attempt": attempt,
        "recorded_at": event.at.astimezone(UTC),
        "body": to_json(event),
    }
    return pa.Table.from_pylist([row], schema=SCHEMA)


def rows_between(
    table: DeltaTable, column: str, after: int, until: int, *, only: type[Event] | None = None
) -> list[dict[str, object]]:
    """Return the rows with `after < column <= until`, ordered by sequence; only those of kind `only`, if given.

    Only this thread asks the storage. Arrow's own threads would call into Python for it, and if one of them still
    releases a file while the interpreter exits, the process aborts and its exit code is lost.

    Raises:
        OSError: A file is missing.
        pyarrow.ArrowException: A file is not valid Parquet with these columns.
    """
    # Files outside the range are not even listed: of thousands of small files only a few are opened.
    pruned = f"{column} > {after} AND {column} <= {until}"
    files = table.to_pyarrow_dataset(file_pruning_predicate=pruned).get_fragments()
    parts = [_read(file, column, after, until) for file in files]
    whole = pa.concat_tables([SCHEMA.empty_table(), *parts])
    wanted = (pc.field(column) > after) & (pc.field(column) <= until)
    wanted = wanted if only is None else wanted & (pc.field("event") == NAMES[only])
    rows: list[dict[str, object]] = whole.filter(wanted).sort_by("sequence").to_pylist()
    return rows


def _read(file: Any, column: str, after: int, until: int) -> pa.Table:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415

    with file.filesystem.open_input_stream(file.path) as stream:
        content = pa.BufferReader(stream.read())
    source = pq.ParquetFile(content, pre_buffer=False)
    groups = [n for n in range(source.num_row_groups) if _overlaps(source.metadata.row_group(n), column, after, until)]
    rows = source.read_row_groups(groups, SCHEMA.names, use_threads=False)
    return rows.select(SCHEMA.names).cast(SCHEMA)


def _overlaps(group: Any, column: str, after: int, until: int) -> bool:
    """Whether a row group may hold such rows; without statistics it may."""
    bounds = next(c.statistics for c in map(group.column, range(group.num_columns)) if c.path_in_schema == column)
    return bounds is None or not bounds.has_min_max or (bounds.max > after and bounds.min <= until)


def entry_of(row: Mapping[str, object], uri: str) -> Entry:
    """Decode the event in a row of the table at `uri`.

    Raises:
        LedgerDamaged: A newer version wrote the event, or its body is not a valid event.
    """
    if row["format_version"] != FORMAT_VERSION:
        raise LedgerDamaged(
            f"{uri}: event {row['sequence']} has format {row['format_version']}, expected {FORMAT_VERSION}",
            fix="a newer version of Tidemill wrote it: upgrade",
        )
    event = from_json(_KINDS[str(row["event"])], str(row["body"]))
    recorded_at = row["recorded_at"]
    assert isinstance(recorded_at, datetime)
    return Entry(sequence=int(str(row["sequence"])), recorded_at=recorded_at, event=event)


def as_json(entry: Entry) -> dict[str, object]:
    """An entry as JSON values: a record of a batch that people and programs can read."""
    return {
        "sequence": entry.sequence,
        "event": NAMES[type(entry.event)],
        "recorded_at": entry.recorded_at.isoformat(),
        **encode(entry.event),
    }
