"""Bounds of what neighbouring batches hold: a search looks only at batches whose bounds fit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tidemill.core.history.index import IndexedBatch
from tidemill.core.log.offsets import merge_ranges
from tidemill.core.plan.amendments import Ranges
from tidemill.core.plan.slices import BatchRange
from tidemill.core.plan.work import Kind
from tidemill.core.time.spans import PaneSpan

MOST_ASKED = 100
"""The most names in `asked` of a zone: each run of a task asks under a name of its own."""

Span = tuple[str, int, int, int]
"""A topic, a partition, and a half-open range of its offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """The batches that committed with the events `first` to `last`; at least one.

    `batches`, `times` (of the commits), `watermarks` and `panes` (of state, and of windows that backfills replaced)
    include both ends; `offsets` are half-open. `began` is as in `IndexedBatch`. `tables` has the last batch that wrote
    each table, and the version after it. `asked` are the names in `asked` of the batches; None for more than
    `MOST_ASKED`.
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
    asked: tuple[str, ...] | None

    def has_of(self, ids: Sequence[BatchRange]) -> bool:
        """Whether the zone may hold one of these batches."""
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
        """Whether state or replaced windows of a table may lie in panes that start in `[low, high)`."""
        span = self.panes.get(table)
        return span is not None and span.first < high and span.last >= low

    def has_asked(self, by: str) -> bool:
        """Whether `by` may have asked for one of its batches."""
        return self.asked is None or by in self.asked


class Reach:
    """A set of offsets, prepared for many searches."""

    def __init__(self, ranges: Ranges) -> None:
        self._starts: dict[tuple[str, int], list[int]] = {}
        self._ends: dict[tuple[str, int], list[int]] = {}
        for topic, items in ranges.items():
            for item in merge_ranges(items):
                place = (topic, item.topic_partition.partition)
                self._starts.setdefault(place, []).append(item.from_offset)
                self._ends.setdefault(place, []).append(item.until_offset)

    def overlaps(self, topic: str, partition: int, low: int, high: int) -> bool:
        """Whether some of these offsets lie in `[low, high)` of a partition."""
        starts = self._starts.get((topic, partition), [])
        at = bisect_right(starts, high - 1) - 1
        return at >= 0 and self._ends[topic, partition][at] > low


def zone_of(first: int, last: int, batches: Sequence[IndexedBatch]) -> Zone:
    """The bounds of these batches: all that committed with events `first` to `last`, in order, at least one."""
    times, marks = [b.at for b in batches], [w for b in batches for w in _watermarks(b)]
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
        began=_began(b.began or {} for b in batches),
        tables={t: (b.batch_id, version) for b in batches for t, version in b.tables.items()},
        asked=_named({b.asked.by for b in batches if b.asked is not None}),
    )


def whole_of(zones: Sequence[Zone]) -> Zone:
    """One zone that holds these zones, which follow each other: it may hold whatever one of them may hold."""
    times, marks = [t for z in zones for t in z.times], [w for z in zones for w in z.watermarks]
    asked = [z.asked for z in zones]
    names = None if None in asked else _named({by for some in asked for by in some or ()})
    return Zone(
        first=zones[0].first,
        last=zones[-1].last,
        batches=(zones[0].batches[0], zones[-1].batches[1]),
        times=(min(times), max(times)),
        watermarks=(min(marks), max(marks)),
        kinds=tuple(sorted({kind for z in zones for kind in z.kinds})),
        offsets=_spanned(
            (topic, p, low, high)
            for z in zones
            for topic, places in z.offsets.items()
            for p, (low, high) in places.items()
        ),
        panes=_bounds(z.panes for z in zones),
        incomplete=_bounds(z.incomplete for z in zones),
        began=_began(z.began for z in zones),
        tables={table: wrote for z in zones for table, wrote in z.tables.items()},
        asked=names,
    )


def _watermarks(batch: IndexedBatch) -> Iterable[int]:
    """The pipeline's before and after the batch, and those of tables that stay behind."""
    return (batch.before, batch.after, *(at for both in (batch.lagging or {}).values() for at in both))


def _named(names: Collection[str]) -> tuple[str, ...] | None:
    return tuple(sorted(names)) if len(names) <= MOST_ASKED else None


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
    items = ((topic, item) for b in batches for topic, items in b.ranges.items() for item in items)
    return _spanned((t, i.topic_partition.partition, i.from_offset, i.until_offset) for t, i in items)


def _spanned(items: Iterable[Span]) -> Mapping[str, Mapping[int, tuple[int, ...]]]:
    """The smallest range that holds all these spans, by topic and partition."""
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for topic, partition, start, end in items:
        places = found.setdefault(topic, {})
        low, high = places.get(partition, (start, end))
        places[partition] = (min(low, start), max(high, end))
    return found


def _began(parts: Iterable[Mapping[str, Mapping[int, int]]]) -> Mapping[str, Mapping[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for part in parts:
        for topic, places in part.items():
            found[topic] = {**places, **found.get(topic, {})}
    return found
