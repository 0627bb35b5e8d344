"""Records that were put aside, as something to read again: their values are kept, whatever retention took since."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.amendments import Aside, Ranges, Repair
from tidemill.core.aside import FIELDS, Choice
from tidemill.core.errors import LogError
from tidemill.core.offsets import OffsetRange, TopicPartition, merge_ranges
from tidemill.core.scan import MemoryScan, Record
from tidemill.core.slices import BatchRange, batch_ranges
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.handles import newest
from tidemill.tables.protocol import Between, TableSpec, of_batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Rows of a table of records put aside, at one version of it."""

    version: int
    rows: pa.Table

    @property
    def batches(self) -> tuple[BatchRange, ...]:
        """The batches that put them there."""
        return batch_ranges(pc.unique(self.rows["batch_id"]).to_pylist())

    @property
    def ranges(self) -> Ranges:
        """Where they are in the log, each once."""
        places = self.rows.select(["topic", "partition", "offset"]).to_pylist()
        items = [OffsetRange(TopicPartition(p["topic"], p["partition"]), p["offset"], p["offset"] + 1) for p in places]
        merged = merge_ranges(items)
        topics = sorted({item.topic_partition.topic for item in merged})
        return {t: tuple(item for item in merged if item.topic_partition.topic == t) for t in topics}

    def of_table(self, table: str) -> Chosen:
        """Those that one published table refused."""
        return Chosen(version=self.version, rows=self.rows.filter(pc.equal(self.rows["table_name"], table)))

    def take(self, most: int | None) -> Chosen:
        """The oldest of them, at most so many."""
        order = [(c, "ascending") for c in ("batch_id", "topic", "partition", "offset")]
        return Chosen(version=self.version, rows=self.rows.sort_by(order).slice(0, most))


class AsideTables:
    """The quarantine and the late table of a pipeline. `uri` says where each lies."""

    def __init__(self, uri: Callable[[str], str], storage: Mapping[str, str] | None = None) -> None:
        self._uri, self._storage = uri, storage or {}

    def choose(self, aside: Aside, choice: Choice) -> Chosen | None:
        """The rows that are meant, at the newest version; None while there is no table."""
        spec = self._spec(aside)
        handle = newest(spec)
        if handle is None:
            return None
        within = of_batches(choice.batches)
        table, version = DeltaRsTable(spec), handle.version()
        parts = [table.read(where=(bounds,), version=version) for bounds in within or [_EVERYTHING]]
        rows = pa.concat_tables(parts)
        return Chosen(version=version, rows=_meeting(choice, rows))

    def scans(self, repair: Repair, ranges: Ranges) -> Mapping[str, MemoryScan]:
        """The records of a repair, by topic, as its plan names them.

        Raises:
            LogError: some are not there, at the version that the plan names.
        """
        chosen = self._at(repair)
        found = {(r["topic"], r["partition"], r["offset"]): r for r in chosen.to_pylist()}
        return {
            topic: MemoryScan(records=self._records(repair, found, items), ranges=items)
            for topic, items in ranges.items()
        }

    def _records(
        self,
        repair: Repair,
        found: Mapping[tuple[str, int, int], Mapping[str, object]],
        items: tuple[OffsetRange, ...],
    ) -> tuple[Record, ...]:
        records = []
        for item in items:
            tp = item.topic_partition
            for offset in range(item.from_offset, item.until_offset):
                row = found.get((tp.topic, tp.partition, offset))
                if row is None:
                    raise LogError(
                        f"{self._uri(repair.source)}: version {repair.version} does not hold offset {offset} of {tp}, "
                        "which the plan names",
                        fix="restore the table as it was when the repair was planned",
                    )
                timestamp, value = row["timestamp"], row["value"]
                assert isinstance(timestamp, datetime)
                assert value is None or isinstance(value, bytes)
                records.append(
                    Record(topic=tp.topic, partition=tp.partition, offset=offset, timestamp=timestamp, value=value)
                )
        return tuple(records)

    def _at(self, repair: Repair) -> pa.Table:
        table = DeltaRsTable(self._spec(repair.source))
        parts = [table.read(where=(bounds,), version=repair.version) for bounds in of_batches(repair.batches)]
        return pa.concat_tables(parts)

    def _spec(self, aside: Aside) -> TableSpec:
        return TableSpec(
            name=aside.value,
            uri=self._uri(aside.value),
            fields=FIELDS[aside],
            pruned_by=("batch_id",),
            storage=self._storage,
        )


_EVERYTHING = Between(column="batch_id", low=None, high=None)


def _meeting(choice: Choice, rows: pa.Table) -> pa.Table:
    equal = {"topic": choice.topic, "partition": choice.partition, "offset": choice.offset, "table_name": choice.table}
    for column, value in equal.items():
        rows = rows if value is None else rows.filter(pc.equal(rows[column], value))
    if choice.since is not None:
        rows = rows.filter(pc.greater_equal(rows["recorded_at"], choice.since))
    if choice.until is not None:
        rows = rows.filter(pc.less(rows["recorded_at"], choice.until))
    return rows if choice.reason is None else rows.filter(_mention(rows["reasons"], choice.reason))


def _mention(reasons: pa.ChunkedArray, text: str) -> pa.Array:
    return pa.array([any(text in reason for reason in row or ()) for row in reasons.to_pylist()], pa.bool_())
