"""Bounds of what some neighbouring batches hold: of many batches only those are looked at whose bounds fit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tidemill.core.amendments import Ranges
from tidemill.core.index import IndexedBatch
from tidemill.core.offsets import merge_ranges
from tidemill.core.plan import Kind
from tidemill.core.position import PaneSpan
from tidemill.core.slices import BatchRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """The batches that committed with the events `first` to `last`; at least one.

    Both ends are included in `batches`, `times` (of the commits), `watermarks` and `panes` (of state, and of what
    backfills replaced); `offsets` are half-open. `began` is as in `IndexedBatch`, `tables` the last batch that wrote
    each table, and the version that it left.
    """

    first: int
    last: int
    batches: tuple[int, ...]
    times: tuple[datetime, ...]
    watermarks: tuple[int, ...]
    kinds: tuple[Kind, ...]
    offsets: Mapping[str, Mapping[int, tuple[int, ...]]]
    panes: Mapping[str, PaneSpan]
    incomplete: Mapping[str, PaneSpan]
    began: Mapping[str, Mapping[int, int]]
    tables: Mapping[str, tuple[int, ...]]
    asked: tuple[str, ...]

    def has_of(self, ids: Sequence[BatchRange]) -> bool:
        """Whether one of these batches may be among its own."""
        low, high = self.batches
        return any(r.from_batch <= high and low < r.until_batch for r in ids)

    def has_read(self, reach: Reach) -> bool:
        """Whether one of its batches may have read some of these offsets."""
        return any(
            reach.overlaps(topic, partition, low, high)
            for topic, partitions in self.offsets.items()
            for partition, (low, high) in partitions.items()
        )

    def has_panes(self, table: str, low: int, high: int) -> bool:
        """Whether state or replaced windows of it may lie in panes that start in `[low, high)`."""
        span = self.panes.get(table)
        return span is not None and span.first < high and span.last >= low


class Reach:
    """Offsets that are asked for again and again."""

    def __init__(self, ranges: Ranges) -> None:
        self._starts: dict[tuple[str, int], list[int]] = {}
        self._ends: dict[tuple[str, int], list[int]] = {}
        for topic, items in ranges.items():
            for item in merge_ranges(items):
                place = (topic, item.topic_partition.partition)
                self._starts.setdefault(place, []).append(item.from_offset)
                self._ends.setdefault(place, []).append(item.until_offset)

    def overlaps(self, topic: str, partition: int, low: int, high: int) -> bool:
        """Whether some of them lie in `[low, high)` of a partition."""
        starts = self._starts.get((topic, partition), [])
        at = bisect_right(starts, high - 1) - 1
        return at >= 0 and self._ends[topic, partition][at] > low


def zone_of(first: int, last: int, batches: Sequence[IndexedBatch]) -> Zone:
    """The bounds of these batches, which are all that committed with events `first` to `last`."""
    times, marks = [b.at for b in batches], [w for b in batches for w in (b.before, b.after)]
    spans = [*(b.panes for b in batches), *_replaced(batches)]
    return Zone(
        first=first,
        last=last,
        batches=(batches[0].batch_id, batches[-1].batch_id),
        times=(min(times), max(times)),
        watermarks=(min(marks), max(marks)),
        kinds=tuple(sorted({b.kind for b in batches})),
        offsets=_offsets(batches),
        panes=_bounds(spans),
        incomplete=_bounds(b.incomplete or {} for b in batches),
        began=_began(batches),
        tables={t: (b.batch_id, version) for b in batches for t, version in b.tables.items()},
        asked=tuple(sorted({b.asked.by for b in batches if b.asked is not None})),
    )


def _replaced(batches: Sequence[IndexedBatch]) -> Iterable[Mapping[str, PaneSpan]]:
    for batch in batches:
        for table, spans in batch.job.panes.items() if batch.job is not None else ():
            yield from ({table: span} for span in spans)


def _bounds(parts: Iterable[Mapping[str, PaneSpan]]) -> Mapping[str, PaneSpan]:
    found: dict[str, PaneSpan] = {}
    for part in parts:
        for table, span in part.items():
            known = found.get(table, span)
            found[table] = PaneSpan(min(known.first, span.first), max(known.last, span.last))
    return found


def _offsets(batches: Sequence[IndexedBatch]) -> Mapping[str, Mapping[int, tuple[int, ...]]]:
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for topic, items in ((t, items) for b in batches for t, items in b.ranges.items()):
        for item in items:
            places, partition = found.setdefault(topic, {}), item.topic_partition.partition
            low, high = places.get(partition, (item.from_offset, item.until_offset))
            places[partition] = (min(low, item.from_offset), max(high, item.until_offset))
    return found


def _began(batches: Sequence[IndexedBatch]) -> Mapping[str, Mapping[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for batch in batches:
        for topic, places in (batch.began or {}).items():
            found[topic] = {**places, **found.get(topic, {})}
    return found
