"""The pass over records, in this process or in Spark's workers: partial aggregates, counts and side outputs come out.

Each task decodes its records and computes the batch's statements over them with DuckDB, a part at a time. So the rows
never leave a worker, and Spark has no query to plan, compile and shuffle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.time.sessions import SessionPanes
from tidemill.engine.aggregate.native_strays import Strays
from tidemill.engine.native.statement import NotComputed, computed
from tidemill.engine.native.translation import Translation
from tidemill.engine.read.blocks import COUNT
from tidemill.engine.read.typed_rows import DecodeBatches
from tidemill.engine.storage.chains import joined, numbered

SCHEMA = "`topic` string, `what` string, `body` binary"
"""What a task gives: rows of one kind as an Arrow stream."""

COUNTS, BLOCKS, REFUSED, TABLE = "counts", "blocks", "refused", "table:"
"""What rows of a task are, beside side outputs: counts, a bitmap of blocks, why it gave up, aggregates of a table."""

PARTLY = "partly"
"""Rows that say of how many rows so many windows of a published table refused each, while others took it."""

PANE, PANE_END = "_pane", "_pane_end"
"""The start of the pane that an aggregate is about and, of a session, its end, in microseconds."""

_PART_BYTES = 2**26
"""Records of so many bytes are one part, however few they are."""

_OUTPUT = pa.schema([("topic", pa.string()), ("what", pa.string()), ("body", pa.binary())])


class Stretches(NamedTuple):
    """What the panes of sessions are: stretches of the records of a key, of the rows that `entering` gives."""

    entering: Translation
    keys: tuple[str, ...]
    panes: SessionPanes


class Aggregation(NamedTuple):
    """Statements for one table, of one branch: what a part of the rows gives, and that of several parts merged.

    A part gives aggregates by pane and key or, without `merged`, the rows that enter the table, in the order of their
    records. With `stretches`, `given` is over their rows with their panes, and parts are not merged here.
    """

    table: str
    given: Translation
    merged: Translation | None = None
    stretches: Stretches | None = None

    @property
    def of_rows(self) -> bool:
        """Whether the rows themselves come back."""
        return self.merged is None and self.stretches is None


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePass:
    """How records of an input are decoded, what becomes of each (`branched`), and what is counted and aggregated.

    Of `branched`, each statement is over the rows of the one before. `missing` has published tables of which some
    windows may refuse a row, and the column of `branched` with their number.

    A task brings back side outputs of up to `held` bytes; if there are more, it brings none, and a second pass has to.
    It gives up if its aggregates are more than `most` bytes. `part` records are decoded and aggregated at once.
    """

    topic: str
    decode: DecodeBatches
    branched: tuple[Translation, ...]
    counted: Translation
    missing: tuple[tuple[str, str], ...]
    aggregations: tuple[Aggregation, ...]
    strays: Strays
    held: int
    most: int
    part: int

    def of_task(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The result of one task, as rows of `SCHEMA`. A task that gives up says why, and nothing else."""
        try:
            found = self._over(batches)
        except NotComputed as error:
            found = _refused(error, expected=error.expected)
        except pa.ArrowException as error:
            found = _refused(error, expected=False)
        rows = [{"topic": self.topic, "what": what, "body": _packed(rows)} for what, rows in found.items()]
        # A task without records has nothing to tell.
        yield from pa.Table.from_pylist(rows, _OUTPUT).to_batches()

    def _over(self, batches: Iterator[pa.RecordBatch]) -> Mapping[str, pa.Table]:
        found = _Found()
        for part in _parts(_read(batches), self.part):
            rows = pa.Table.from_batches([self.decode.whole(batch) for batch in part])
            self._take(rows, found)
        return self._told(found)

    def _take(self, rows: pa.Table, found: _Found) -> None:
        """Count and aggregate some decoded rows."""
        branched = reduce(lambda found, each: computed(each, found), self.branched, rows)
        found.add(COUNTS, computed(self.counted, branched))
        for table, column in self.missing:
            refusing = np.asarray(branched[column])
            if len(some := refusing[refusing > 0]):
                numbers, times = np.unique(some, return_counts=True)
                found.add(PARTLY, pa.table({"table": [table] * len(numbers), "windows": numbers, "rows": times}))
        for number, aggregation in enumerate(self.aggregations):
            given = _given(aggregation, branched)
            if given.num_rows or aggregation.of_rows:
                found.aggregates.setdefault(number, []).append(given)
        stray = self.strays.where(branched)
        if len(stray):
            found.blocks[np.asarray(rows["_block"])[stray]] = True
            for what, kept in self.strays.of(branched, rows, stray).items():
                found.hold(what, kept, self.held)

    def _told(self, found: _Found) -> Mapping[str, pa.Table]:
        told = {what: pa.concat_tables(parts) for what, parts in found.parts.items()}
        if found.blocks.any():
            told[BLOCKS] = pa.table({"bitmap": [np.packbits(found.blocks, bitorder="little").tobytes()]})
        size = 0
        for number, parts in sorted(found.aggregates.items()):
            aggregation, rows = self.aggregations[number], pa.concat_tables(parts)
            if len(parts) > 1 and aggregation.merged is not None:
                rows = computed(aggregation.merged, rows)
            size += rows.nbytes
            told[f"{TABLE}{number}"] = rows
        if size > self.most:
            raise NotComputed(f"{size:,} bytes of aggregates in one task", expected=True)
        return told


@dataclass
class _Found:
    """What a task has found so far: rows by what they are, aggregates by the number of their aggregation, blocks."""

    parts: dict[str, list[pa.Table]] = field(default_factory=dict)
    aggregates: dict[int, list[pa.Table]] = field(default_factory=dict)
    blocks: np.ndarray = field(default_factory=lambda: np.zeros(COUNT, np.bool_))
    held: int = 0

    def add(self, what: str, rows: pa.Table) -> None:
        """Some more rows."""
        self.parts.setdefault(what, []).append(rows)

    def hold(self, what: str, rows: pa.Table, most: int) -> None:
        """Some more rows to put aside; all of them are dropped if they are more than `most` bytes."""
        self.held += rows.nbytes
        if self.held <= most:
            self.add(what, rows)
        else:
            self.parts = {what: parts for what, parts in self.parts.items() if what in {COUNTS, PARTLY}}


def _given(aggregation: Aggregation, branched: pa.Table) -> pa.Table:
    """What rows give for a table."""
    if aggregation.stretches is None:
        return computed(aggregation.given, branched)
    entering, keys, panes = aggregation.stretches
    rows = computed(entering, branched)
    times = np.asarray(rows["_time"])
    starts, ends = joined(numbered(rows, keys), times, times + panes.gap)
    return computed(
        aggregation.given, rows.append_column(PANE, pa.array(starts)).append_column(PANE_END, pa.array(ends))
    )


def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; a file that cannot be read is left to Spark, which says what is wrong with it."""
    try:
        yield from batches
    except (OSError, pa.ArrowException) as error:
        raise NotComputed(str(error), expected=True) from error


def _parts(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[list[pa.RecordBatch]]:
    """The batches in parts of up to `most` records, or twice as many, and of about `_PART_BYTES` bytes."""
    part, count, size = [], 0, 0
    for whole in batches:
        for batch in (whole.slice(start, most) for start in range(0, whole.num_rows, most)):
            part.append(batch)
            count, size = count + batch.num_rows, size + batch.nbytes
            if count >= most or size >= _PART_BYTES:
                yield part
                part, count, size = [], 0, 0
    if part:
        yield part


def _refused(error: Exception, *, expected: bool) -> Mapping[str, pa.Table]:
    first, *_ = [*str(error).splitlines(), ""]
    return {REFUSED: pa.table({"why": [first], "expected": [expected]})}


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def unpacked(body: bytes) -> pa.Table:
    """Rows from an Arrow stream."""
    return pa.ipc.open_stream(body).read_all()
