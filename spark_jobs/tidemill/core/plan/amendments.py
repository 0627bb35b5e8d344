"""Amendments: batches that process records again, or that return to an earlier position.

An amendment is a batch like any other: planned, claimed, audited, published and committed once. It reads no new
offsets, and only a rewind moves offsets or watermark. A record that is read again is late only if state of its windows
was forgotten.

- A *repair* takes records from the quarantine or the late table. They leave that table, their slice is added to the
  state, and the windows that they touch are published again. Tables of firings fold all records of the keys that they
  touch again, so that they count where they lie in the log.
- A *backfill* reads offsets of the log again, in one batch or several. Its slices stay hidden until its last batch.
  That batch hides the slices of the batches that read those offsets before, and replaces every window with state of
  either.
- A *switch* completes a new generation: its tables take the place of the published ones.
- A *fold* joins many slices into one with the same content, so that state does not grow with the number of batches.
- A *rewind* puts offsets, watermark, state and tables back to what they were after a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tidemill.core.log.offsets import OffsetRange
from tidemill.core.log.packed_offsets import Packed, unpacked
from tidemill.core.plan.position import Position
from tidemill.core.plan.replay import Replay
from tidemill.core.plan.slices import BatchRange
from tidemill.core.time.spans import PaneSpan

Ranges = Mapping[str, tuple[OffsetRange, ...]]
"""Offsets by topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Who asked for a change of committed results, and why."""

    by: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redefined:
    """From this batch on, numbers have another meaning, because somebody decided so: what changed, in words, by table.

    Tables that earlier batches left out get windows that start after these `event_times`, in microseconds.
    """

    tables: Mapping[str, tuple[str, ...]]
    reason: Reason
    event_times: Mapping[str, int] | None = None


class SideOutput(StrEnum):
    """The tables of records that were not processed."""

    QUARANTINE = "quarantine"
    LATE = "late"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """Records from version `version` of the side output `source` that are processed once more.

    `batches` are the batches that put them there. `records` are the offsets of the records; older plans have them in
    `again`. `only` is the one published table that late records are admitted to; None for all tables. `mixed` says that
    records may be added, by the current declaration, to numbers that had another meaning. `replay` says how tables of
    firings fold the keys of these records again; None if there are none, or if the records count in this batch instead.
    """

    source: SideOutput
    version: int
    batches: tuple[BatchRange, ...]
    records: Packed | None = None
    only: str | None = None
    reason: Reason
    mixed: bool | None = None
    again: Ranges | None = None
    replay: Replay | None = None

    @property
    def ranges(self) -> Ranges:
        """The offsets of its records, by topic."""
        return (self.again or {}) if self.records is None else unpacked(self.records)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """Return to `position`, with each table at its version of that time; None for a table that did not exist."""

    position: Position
    versions: Mapping[str, int | None] = field(default_factory=dict)
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """From now on, readers see `generation`: its tables become the published ones."""

    generation: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """The slices of `batches` become one slice, with state in `panes`, by published table. Nothing is published."""

    batches: tuple[BatchRange, ...]
    panes: Mapping[str, PaneSpan]


def count(ranges: Ranges) -> int:
    """The number of offsets in these ranges."""
    return sum(len(r) for of_topic in ranges.values() for r in of_topic)


def split(ranges: Ranges, most: int | None) -> tuple[Ranges, Ranges]:
    """The first `most` offsets, topic by topic, and the rest; with None, all offsets and an empty rest."""
    left = count(ranges) if most is None else most
    taken: dict[str, tuple[OffsetRange, ...]] = {}
    rest: dict[str, tuple[OffsetRange, ...]] = {}
    for topic, items in ranges.items():
        now, later = [], []
        for item in items:
            part = item.take(left)
            left -= len(part)
            now.append(part)
            later.append(OffsetRange(item.topic_partition, part.until_offset, item.until_offset))
        taken[topic], rest[topic] = _full(now), _full(later)
    return _without_empty(taken), _without_empty(rest)


def _full(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    return tuple(r for r in ranges if r)


def _without_empty(ranges: Ranges) -> Ranges:
    return {topic: items for topic, items in ranges.items() if items}
