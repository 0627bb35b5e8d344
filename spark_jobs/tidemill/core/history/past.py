"""The batches of a ledger: old ones from its index, the newest ones from their events."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tidemill.core.history.coverage import Cover, covers_of, first_offsets, united
from tidemill.core.history.index import IndexedBatch
from tidemill.core.history.linking import with_all_of
from tidemill.core.history.zones import Reach, Zone
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Ranges
from tidemill.core.plan.slices import BatchRange, SliceSet
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Event, Planned

Fits = Callable[[Zone], bool]
"""A function that tells whether a zone may hold batches that are wanted."""


@dataclass(frozen=True, kw_only=True)
class Past:
    """The batches of a ledger as it was when it was read; later events are not in it.

    `zones` bound the batches in the index, oldest first. `parts` gives the smaller zones, in order, that a zone of many
    batches consists of; it gives nothing for the smallest zones, whose batches `load` gives. `events` follow the index,
    and `recent` are the batches that committed in them.
    """

    zones: tuple[Zone, ...] = ()
    parts: Callable[[Zone], Sequence[Zone]] = lambda _: ()
    load: Callable[[Zone], Sequence[IndexedBatch]] = lambda _: ()
    events: tuple[Event, ...] = ()
    recent: tuple[IndexedBatch, ...] = ()
    _loaded: dict[int, Sequence[IndexedBatch]] = field(default_factory=dict, init=False, compare=False)

    def blocks(self, fits: Fits = lambda _: True, *, newest_first: bool = False) -> Iterator[Zone]:
        """The smallest zones that fit; `fits` must hold for a zone when it holds for one of its parts."""
        left = [iter(self.zones[:: -1 if newest_first else 1])]
        while left:
            zone = next(left[-1], None)
            if zone is None:
                left.pop()
            elif fits(zone):
                if parts := self.parts(zone):
                    left.append(iter(parts[:: -1 if newest_first else 1]))
                else:
                    yield zone

    def batches(self, fits: Fits = lambda _: True) -> Iterator[IndexedBatch]:
        """The batches of the zones that fit, then all recent batches, oldest first."""
        for zone in self.blocks(fits):
            yield from self._of(zone)
        yield from self.recent

    def backwards(self, fits: Fits = lambda _: True) -> Iterator[IndexedBatch]:
        """All recent batches, then the batches of the zones that fit, newest first."""
        yield from reversed(self.recent)
        for zone in self.blocks(fits, newest_first=True):
            yield from reversed(self._of(zone))

    def _of(self, zone: Zone) -> Sequence[IndexedBatch]:
        if zone.first not in self._loaded:
            self._loaded[zone.first] = self.load(zone)
        return self._loaded[zone.first]

    def with_ids(self, ids: Sequence[BatchRange]) -> list[IndexedBatch]:
        """The batches with these ids, without those that did not commit."""
        return [b for b in self.batches(lambda zone: zone.has_of(ids)) if any(b.batch_id in r for r in ids)]

    def batch(self, batch_id: int) -> IndexedBatch | None:
        """The batch with this id; None when it did not commit."""
        return next(iter(self.with_ids([BatchRange(batch_id, batch_id + 1)])), None) if batch_id > 0 else None

    def covers(self, slices: SliceSet, fits: Fits = lambda _: True) -> tuple[Cover, ...]:
        """The batches of zones that fit, and recent ones, whose slices are visible and hold records that were read."""
        return covers_of(self.batches(fits), slices)

    def covers_of(self, wanted: Ranges, slices: SliceSet) -> tuple[Cover, ...]:
        """The batches that read some of these offsets, the batches that share offsets with those, and so on; by id."""
        known = self._reading(wanted)
        while True:
            found = with_all_of(wanted, self.covers(slices, partial(_has_one, sorted(known))))
            wider = self._reading(united([wanted, *(c.ranges for c in found)]))
            if wider <= known:
                return found
            known |= wider

    def _reading(self, ranges: Ranges) -> set[int]:
        """The sequences of the first events of the blocks that may have batches which read some of these offsets."""
        reach = Reach(ranges)
        return {zone.first for zone in self.blocks(lambda zone: zone.has_read(reach))}

    @property
    def first(self) -> IndexedBatch | None:
        """The first batch that committed."""
        return next(self.batches(), None)

    @property
    def first_of_generation(self) -> IndexedBatch | None:
        """The first batch since the tables of this ledger became the published ones."""
        return self.switch or self.first

    @property
    def newest(self) -> IndexedBatch | None:
        """The last batch that committed."""
        return next(self.backwards(), None)

    @property
    def switch(self) -> IndexedBatch | None:
        """The last batch that made the tables of this ledger the published ones, if there is one."""
        found = self.backwards(lambda zone: Kind.SWITCH in zone.kinds)
        return next((b for b in found if b.kind is Kind.SWITCH), None)

    def generation(self, fits: Fits = lambda _: True) -> Iterator[IndexedBatch]:
        """The batches since the tables of this ledger became the published ones."""
        since = self.since
        return (b for b in self.batches(lambda z: z.batches[1] >= since and fits(z)) if b.batch_id >= since)

    @property
    def since(self) -> int:
        """The id of the first batch that may have written the published tables."""
        return 1 if (switch := self.switch) is None else switch.batch_id

    def version(self, table: str, *, since: int, through: int) -> int | None:
        """The version of a table after the last batch from `since` to `through` that wrote it; None when none did."""
        wanted = [BatchRange(since, through + 1)] if 0 < since <= through else []
        found = self.backwards(lambda z: z.has_of(wanted) and table in z.tables and z.tables[table][0] >= since)
        return next((b.tables[table] for b in found if since <= b.batch_id <= through and table in b.tables), None)

    def versions(self, tables: Collection[str], *, since: int, through: int) -> dict[str, int]:
        """The versions of tables after the batches `since` to `through`, without tables that none of them wrote."""
        found = {table: self.version(table, since=since, through=through) for table in tables}
        return {table: version for table, version in found.items() if version is not None}

    @property
    def begin(self) -> Mapping[TopicPartition, int]:
        """The first offset that a live batch read, by topic-partition."""
        places = ((topic, known) for zone in self.zones for topic, known in zone.began.items())
        known = [(TopicPartition(topic, p), at) for topic, found in places for p, at in found.items()]
        # Of several first offsets, the oldest one counts.
        return {**first_offsets(self.events), **dict(reversed(known))}

    def asked(self, by: str) -> Iterator[IndexedBatch]:
        """The amendments that somebody asked for."""
        return (b for b in self.batches(lambda z: z.has_asked(by)) if b.asked is not None and b.asked.by == by)

    def plans(self) -> Iterator[Planned]:
        """The plans in the newest events, whether their batches committed or not."""
        return (event for event in self.events if isinstance(event, Planned))


def _has_one(firsts: Sequence[int], zone: Zone) -> bool:
    """Whether the zone is, or contains, a block that begins with one of these events; `firsts` is sorted."""
    at = bisect_left(firsts, zone.first)
    return at < len(firsts) and firsts[at] <= zone.last
