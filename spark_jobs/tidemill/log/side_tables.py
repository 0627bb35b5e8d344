"""Reads rejected and late records again. Their values are kept here, even if retention has deleted them in the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.contract.reasons import sort_of
from tidemill.core.errors import LogError
from tidemill.core.log.offsets import MAX_OFFSET, OffsetRange, TopicPartition
from tidemill.core.log.scan import TableScan
from tidemill.core.plan.amendments import Ranges, Repair, SideOutput
from tidemill.core.plan.slices import BatchRange, batch_ranges, in_both
from tidemill.core.repair.side_outputs import FIELDS, Selection
from tidemill.log.records import in_years
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.files import edges_of
from tidemill.tables.handles import newest
from tidemill.tables.interface import Between, TableSpec, of_batches
from tidemill.tables.lookup import Lookup

_PLACE = ("batch_id", "topic", "partition", "offset")
_RECORD = ("topic", "partition", "offset", "timestamp", "value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Rows of the quarantine or the late table, at one version of that table."""

    version: int
    rows: pa.Table

    @property
    def batches(self) -> tuple[BatchRange, ...]:
        """The batches that wrote these rows."""
        return batch_ranges(pc.unique(self.rows["batch_id"]).to_pylist())

    @property
    def ranges(self) -> Ranges:
        """The offsets of these rows in the log, each once."""
        topics = sorted(pc.unique(self.rows["topic"]).to_pylist())
        return {topic: self._ranges(topic) for topic in topics}

    def _ranges(self, topic: str) -> tuple[OffsetRange, ...]:
        rows = self.rows.filter(pc.equal(self.rows["topic"], topic))
        partitions, offsets = rows["partition"].to_numpy(), rows["offset"].to_numpy()
        found: list[OffsetRange] = []
        for partition in np.unique(partitions).tolist():
            place, own = TopicPartition(topic, partition), np.unique(offsets[partitions == partition])
            cuts = np.flatnonzero(np.diff(own) != 1)
            firsts, lasts = own[np.append(0, cuts + 1)], own[np.append(cuts, len(own) - 1)]
            found += [OffsetRange(place, a, b + 1) for a, b in zip(firsts.tolist(), lasts.tolist(), strict=True)]
        return tuple(found)

    def take(self, most: int | None) -> Chosen:
        """Return the `most` oldest of these rows, or all."""
        order = [(c, "ascending") for c in _PLACE]
        return Chosen(version=self.version, rows=self.rows.sort_by(order).slice(0, most))


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The oldest of the selected rows, with all of their columns; `total` counts all selected rows."""

    chosen: Chosen
    total: int


class SideTables:
    """The quarantine and the late table of a pipeline. `uri` returns where each one lies."""

    def __init__(self, uri: Callable[[str], str], storage: Callable[[], Mapping[str, str]] = dict) -> None:
        self._uri, self._storage = uri, storage

    def choose(self, output: SideOutput, selection: Selection, columns: Sequence[str] = ()) -> Chosen | None:
        """Return the selected rows at the newest version; None if the table does not exist.

        With `columns`, only these columns and those needed for the selection are read.
        """
        spec = self._spec(output)
        handle = newest(spec)
        if handle is None:
            return None
        read = tuple(dict.fromkeys((*_columns(output, selection), *columns))) if columns else None
        return self._chosen(spec, handle.version(), selection, read)

    def first(self, output: SideOutput, selection: Selection, most: int | None) -> First | None:
        """Return the oldest selected rows, at most `most`, or all; None if the table does not exist.

        Of all other rows only the place is read, and what the selection needs. Values are large.
        """
        spec = self._spec(output)
        handle = newest(spec)
        if handle is None:
            return None
        version = handle.version()
        found: list[pa.Table] = []
        total = 0
        for batches in _in_parts(selection.batches or (_ALL,), edges_of(handle, "batch_id", _AT_ONCE)):
            part = self._chosen(spec, version, replace(selection, batches=batches), _columns(output, selection))
            missing = part.rows.num_rows if most is None else most - total
            found += [part.take(missing).rows] if missing > 0 or not found else []
            total += part.rows.num_rows
        oldest = Chosen(version=version, rows=pa.concat_tables(found)).take(most)
        if not total:
            return First(chosen=oldest, total=0)
        ends = pc.min_max(oldest.rows["offset"]).as_py()
        within = Between(column="offset", low=ends["min"], high=min(ends["max"] + 1, MAX_OFFSET))
        rows = self._chosen(spec, version, replace(selection, batches=oldest.batches), None, within)
        return First(chosen=rows.take(most), total=total)

    def oldest(self, output: SideOutput, selection: Selection, most: int) -> Chosen | None:
        """Return the place of the oldest selected rows, at most `most`; None if the table does not exist.

        Reads no values, and only as many batches as it takes to find these rows.
        """
        spec = self._spec(output)
        handle = newest(spec)
        if handle is None:
            return None
        found: list[pa.Table] = []
        for batches in _in_parts(selection.batches or (_ALL,), edges_of(handle, "batch_id", most)):
            part = replace(selection, batches=batches)
            found.append(self._chosen(spec, handle.version(), part, _columns(output, selection)).rows)
            if sum(rows.num_rows for rows in found) >= most:
                break
        return Chosen(version=handle.version(), rows=pa.concat_tables(found)).take(most)

    def parts(self, output: SideOutput, selection: Selection, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the selected rows of one version in parts of about `_AT_ONCE`; nothing if the table does not exist.

        Only `columns`, the batch and what the selection needs are read.
        """
        spec = self._spec(output)
        handle = newest(spec)
        if handle is None:
            return
        version, read = handle.version(), tuple(dict.fromkeys(("batch_id", *_asked(selection), *columns)))
        for batches in _in_parts(selection.batches or (_ALL,), edges_of(handle, "batch_id", _AT_ONCE)):
            yield self._chosen(spec, version, replace(selection, batches=batches), read).rows

    def lacking(self, table: str, batches: tuple[BatchRange, ...] = ()) -> pa.Table:
        """The records that some batches, or all, put aside and that a published table lacks: topic, partition, offset.

        They are those in quarantine, and those in the late table for this table, at the newest versions.
        """
        found = [_NOWHERE]
        for output, of_table in ((SideOutput.QUARANTINE, None), (SideOutput.LATE, table)):
            chosen = self.choose(output, Selection(table=of_table, batches=batches), columns=_PLACE)
            found += [] if chosen is None else [chosen.rows.select(_NOWHERE.column_names)]
        return pa.concat_tables(found)

    def scans(self, repair: Repair, ranges: Ranges) -> Mapping[str, TableScan]:
        """Return the records of a repair by topic, as its plan names them.

        Raises:
            LogError: some records are missing in the version that the plan names.
        """
        table = DeltaRsTable(self._spec(repair.source))
        within = of_batches(repair.batches)
        rows = pa.concat_tables(table.read(where=(b,), columns=_RECORD, version=repair.version) for b in within)
        return {
            topic: TableScan(rows=self._all_of(repair, _placed(rows, topic, items), items), ranges=items)
            for topic, items in ranges.items()
        }

    def _all_of(self, repair: Repair, rows: pa.Table, items: tuple[OffsetRange, ...]) -> pa.Table:
        """Return the rows of one topic, which hold each of its records once, after checking that none is missing."""
        if rows.num_rows < sum(map(len, items)):
            there = set(zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True))
            tp, offset = next(place for place in _places(items) if (place[0].partition, place[1]) not in there)
            raise LogError(
                f"{self._uri(repair.source)}: version {repair.version} does not hold offset {offset} of {tp}, "
                "which the plan names",
                fix="restore the table as it was when the repair was planned",
            )
        return rows

    def _chosen(
        self,
        spec: TableSpec,
        version: int,
        selection: Selection,
        columns: tuple[str, ...] | None,
        *also: Between,
    ) -> Chosen:
        table = DeltaRsTable(spec)
        within = of_batches(selection.batches) or [_EVERYTHING]
        rows = pa.concat_tables(table.read(where=(b, *also), columns=columns, version=version) for b in within)
        if "timestamp" in rows.column_names:
            times = rows.schema.get_field_index("timestamp")
            rows = rows.set_column(times, "timestamp", in_years(rows["timestamp"]))
        return Chosen(version=version, rows=_meeting(selection, rows))

    def _spec(self, output: SideOutput) -> TableSpec:
        return TableSpec(
            name=output.value,
            uri=self._uri(output.value),
            fields=FIELDS[output],
            pruned_by=("batch_id",),
            storage=self._storage,
        )


_AT_ONCE = 100_000
"""About so many places of rows are held at once; a batch is not divided."""

_NOWHERE = pa.table(
    {
        "topic": pa.array([], pa.string()),
        "partition": pa.array([], pa.int32()),
        "offset": pa.array([], pa.int64()),
    }
)
_EVERYTHING = Between(column="batch_id", low=None, high=None)
_ALL = BatchRange(1, MAX_OFFSET)


def _in_parts(wanted: tuple[BatchRange, ...], edges: Sequence[int]) -> Iterator[tuple[BatchRange, ...]]:
    """Split the wanted batches at these edges, in order; empty parts are left out, but there is one part at least."""
    bounds = pairwise([1, *edges, MAX_OFFSET])
    parts = [in_both(wanted, [BatchRange(low, high)]) for low, high in bounds if low < high]
    yield from [part for part in parts if part] or [wanted]


def _columns(output: SideOutput, selection: Selection) -> tuple[str, ...]:
    """The columns that say where a row is, for which table, and those that the selection needs."""
    place = (*_PLACE, "table_name") if output is SideOutput.LATE else _PLACE
    return tuple(dict.fromkeys((*place, *_asked(selection))))


def _asked(selection: Selection) -> tuple[str, ...]:
    """The columns that the selection needs, beside the batch."""
    values = {**_equal(selection), "recorded_at": selection.since or selection.until, "reasons": selection.reason}
    return tuple(name for name, value in values.items() if value is not None)


def _equal(selection: Selection) -> Mapping[str, str | int | None]:
    """The value that the selection wants in each of these columns; None is any value."""
    return {
        "topic": selection.topic,
        "partition": selection.partition,
        "offset": selection.offset,
        "table_name": selection.table,
    }


def _placed(rows: pa.Table, topic: str, items: tuple[OffsetRange, ...]) -> pa.Table:
    """Return the rows of these offsets in order, each once: the late table has a row for each table they missed."""
    rows = rows.filter(pc.equal(rows["topic"], topic))
    rows = rows.filter(pa.array(Lookup(items).find(rows["partition"], rows["offset"]) >= 0))
    rows = rows.sort_by([("partition", "ascending"), ("offset", "ascending")])
    partitions, offsets = rows["partition"].to_numpy(), rows["offset"].to_numpy()
    first = np.ones(rows.num_rows, dtype=bool)
    first[1:] = (partitions[1:] != partitions[:-1]) | (offsets[1:] != offsets[:-1])
    return rows.filter(pa.array(first))


def _places(items: tuple[OffsetRange, ...]) -> Iterator[tuple[TopicPartition, int]]:
    return ((r.topic_partition, offset) for r in items for offset in range(r.from_offset, r.until_offset))


def _meeting(selection: Selection, rows: pa.Table) -> pa.Table:
    for column, value in _equal(selection).items():
        rows = rows if value is None else rows.filter(pc.equal(rows[column], value))
    if selection.since is not None:
        rows = rows.filter(pc.greater_equal(rows["recorded_at"], selection.since))
    if selection.until is not None:
        rows = rows.filter(pc.less(rows["recorded_at"], selection.until))
    return rows if selection.reason is None else rows.filter(_mention(rows["reasons"], selection.reason))


def _mention(reasons: pa.ChunkedArray, text: str) -> pa.Array:
    """Whether a reason of each row, or its sort, contains the text. Reasons written by old versions have no sort."""
    column = reasons.combine_chunks()
    texts = pc.list_flatten(column).dictionary_encode()
    told = [text in reason or text in sort_of(reason) for reason in texts.dictionary.to_pylist()]
    found = np.zeros(len(column), dtype=bool)
    found[pc.list_parent_indices(column).filter(pc.take(pa.array(told, pa.bool_()), texts.indices)).to_numpy()] = True
    return pa.array(found)
