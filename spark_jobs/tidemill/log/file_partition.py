"""One partition of the file log: a folder of segments.

A segment is named after its base offset, `00000000000000000042.parquet`. If two writers append at the same end, exactly
one of them gets the name; the other reads the new end and tries again. An empty file, `00000000000000000042.start`,
says where the log starts: it is written before anything below it is deleted, and the highest one counts. The newest
segment is never deleted: its footer tells the end of the log and what each producer appended last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.errors import CommitUnknown, OffsetsLost
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.once import once
from tidemill.log import refusals
from tidemill.log.file_memory import FileMemory, Listing, digits_of
from tidemill.log.interface import Topic, Usage
from tidemill.log.segment import TAIL_LENGTH, Footer, damaged, decode_footer, encode, footer_length, remember
from tidemill.log.writable import LandedBatch, ProducerBatch
from tidemill.stores.interface import Store

_LISTINGS = 5

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tip:
    """The end of the log: the bounds of the partition, and the newest share of each producer."""

    listing: Listing
    held: OffsetRange
    newest: Mapping[str, LandedBatch]


class FilePartition:
    """Appends to, checks and trims the folder of one partition. `WritableLog` documents the promises."""

    def __init__(
        self,
        store: Store,
        topic: Topic,
        partition: int,
        clock: Callable[[], datetime],
        memory: FileMemory | None = None,
    ) -> None:
        self._store = store
        self._topic_id = topic.topic_id
        self._place = refusals.check_partition(topic, partition)
        self._folder = f"{topic.name}/{topic.topic_id}/{partition}"
        self._clock = clock
        self._memory = memory

    @property
    def place(self) -> TopicPartition:
        """The topic and the number of this partition."""
        return self._place

    def bounds(self, since: int = 0) -> OffsetRange:
        """Return the range from the first offset held to the next one to write.

        If a segment begins at the offset `since`, the range begins there or later. Costs a footer and a listing: in a
        bucket, of the names from `since` on, and then of all names if no segment begins there.
        """
        return self._settled(self._tip_of, self._listed_since(since)).held

    def usage(self) -> Usage:
        """Count the segments and sum up their sizes."""
        sizes = {n: s for n, s in self._store.sizes(self._folder).items() if n.endswith(".parquet")}
        return Usage(segments=len(sizes), bytes=sum(sizes.values()))

    def cover(self, wanted: OffsetRange) -> dict[str, OffsetRange]:
        """Map the path of each segment that holds a part of `wanted` to the offsets it holds of it, in order.

        `wanted` must not be empty. The footer of each segment is checked.

        Raises:
            OffsetsLost: some offsets are gone, not written yet, or missing in between.
            SegmentDamaged: a file that should hold some of them cannot be read.
        """
        known = None if self._memory is None else self._memory.listings.get(self._folder)
        if known is not None and known.since > wanted.from_offset:
            known = None
        return self._settled(lambda listing: self._cover(listing, wanted), known)

    def append(self, records: pa.Table, at: int | None, batch: ProducerBatch | None) -> OffsetRange:
        """Write a segment at the end of the partition and return its offsets.

        With `at`, only if the partition ends there. With `batch`, only if its share is not there yet.
        """
        refusals.check_size(self._place, len(records))
        while True:
            tip = self._tip()
            if known := batch and self._known(tip, batch, len(records)):
                return known
            refusals.check_position(tip.held, at)
            end = tip.held.until_offset
            written = OffsetRange(self._place, end, end + len(records))
            if not written or self._take(written, records, tip, batch):
                return written

    def landed(self, producer_id: str, sequence: int | None) -> LandedBatch | None:
        """Return the share of a producer's batch, without `sequence` of its newest one; None if it is not known."""
        tip = self._tip()
        newest = tip.newest.get(producer_id)
        if newest is None or sequence is None:
            return newest
        return self._share(tip, newest, sequence)

    def trim(self, before_offset: int) -> OffsetRange:
        """Delete the segments wholly below the offset. After a crash, files that nobody reads stay for a later trim."""
        held = self._tip().held
        refusals.check_trim(held, before_offset)
        if before_offset > held.from_offset:
            self._store.put_if_absent(self._name(before_offset, "start"), b"")
        listing = self._list()
        start = listing.start
        for base, following in pairwise(listing.bases()):
            if following <= start:
                self._store.delete(self._name(base, "parquet"))
        for name in sorted(listing.starts)[:-1]:
            self._store.delete(f"{self._folder}/{name}")
        return OffsetRange(self._place, start, max(held.until_offset, start))

    def _name(self, offset: int, kind: str) -> str:
        return f"{self._folder}/{digits_of(offset)}.{kind}"

    def _list(self) -> Listing:
        return self._remembered(Listing.of(self._store.list(self._folder)))

    def _listed_since(self, offset: int) -> Listing | None:
        """The names from this offset on if a segment begins there, or all names; None if all have to be listed.

        A reader of whole segments goes on where one begins. Else it read a part of a segment, whose name is before the
        offset, or all there is: then only the newest segment tells that nothing was lost.
        """
        if not offset:
            return None
        first = digits_of(offset)
        names = self._store.list(self._folder, first)
        found = Listing.of([name for name in names if name > first], offset)
        if found.oldest == offset:
            return self._remembered(found)
        # Earlier names were not asked for: a store that tells some of them has told all.
        return self._remembered(Listing.of(names)) if any(name < first for name in names) else None

    def _remembered(self, listing: Listing) -> Listing:
        if self._memory is not None:
            self._memory.listings[self._folder] = listing
        return listing

    def _settled(self, use: Callable[[Listing], _T], known: Listing | None = None) -> _T:
        """Call `use` with a listing, by default a new one, and with a new one before a loss is believed.

        Others append and trim while a listing is made. So a listing may show a start or a segment, but not the segments
        or the start that were written before it. The next listing has them.
        """
        for attempt in range(_LISTINGS):
            listing = known if known is not None and attempt == 0 else self._list()
            if attempt == 0 and (listing.oldest or 0) > listing.start:
                continue
            try:
                return use(listing)
            except FileNotFoundError as error:
                missing = error
            except OffsetsLost:
                if attempt > 0:
                    raise
        raise damaged(self._store.locate(self._folder), "segments that can be opened", str(missing))

    def _tip(self) -> _Tip:
        return self._settled(self._tip_of)

    def _tip_of(self, listing: Listing) -> _Tip:
        newest = listing.newest
        footer = None if newest is None else self._footer(newest)
        end = footer.range.until_offset if footer else 0
        if end < listing.start:
            raise OffsetsLost(
                f"topic {self._place.topic} partition {self._place.partition}: the log starts at "
                f"{listing.start}, but its newest segment ends at {end}: the segments after it are gone",
                fix=f"bring the segment files back to {self._store.locate(self._folder)}",
            )
        return _Tip(
            listing=listing,
            held=OffsetRange(self._place, listing.start, end),
            newest=footer.newest if footer else {},
        )

    def _footer(self, base: int) -> Footer:
        def read(file: str) -> Footer:
            return self._read_footer(file, base)

        return once(None if self._memory is None else self._memory.footers, self._name(base, "parquet"), read)

    def _read_footer(self, name: str, base: int) -> Footer:
        tail = self._store.tail(name, TAIL_LENGTH)
        if len(tail.data) < footer_length(tail.data) <= tail.size:
            tail = self._store.tail(name, footer_length(tail.data))
        path = self._store.locate(name)
        return decode_footer(path, tail, topic_id=self._topic_id, place=self._place, base_offset=base)

    def _cover(self, listing: Listing, wanted: OffsetRange) -> dict[str, OffsetRange]:
        end, start = listing.newest or 0, listing.start
        if wanted.until_offset > end:
            end = self._tip_of(listing).held.until_offset
        refusals.check_held(wanted, OffsetRange(self._place, start, max(start, end)))
        files: dict[str, OffsetRange] = {}
        position = wanted.from_offset
        touched = listing.bases(position)
        for base, following in zip(touched, (*touched[1:], None), strict=True):
            if position >= wanted.until_offset:
                break
            # The segment behind a hole may be the missing one, under a wrong name: then its footer is refused.
            until = self._checked_end(base, following)
            if base > position:
                raise refusals.hole(self._place, position, base)
            if until > position:
                files[self._store.locate(self._name(base, "parquet"))] = OffsetRange(self._place, base, until)
                position = until
        return files

    def _checked_end(self, base: int, following: int | None) -> int:
        until = self._footer(base).range.until_offset
        if following is not None and until > following:
            path = self._store.locate(self._name(base, "parquet"))
            raise damaged(path, f"records up to the next segment at {following}", f"records up to {until}")
        return until

    def _take(self, written: OffsetRange, records: pa.Table, tip: _Tip, batch: ProducerBatch | None) -> bool:
        """Write the segment under its name; False if another writer has taken the name."""
        landed = LandedBatch(batch=batch, range=written) if batch else None
        footer = Footer(range=written, newest=remember(tip.newest, landed))
        data = encode(self._topic_id, footer, records, self._clock())
        if not self._store.put_if_absent(self._name(written.from_offset, "parquet"), data):
            return False
        # If this writer stood still while others wrote and trimmed, the name it wants is free again.
        if self._list().start > written.from_offset:
            raise CommitUnknown(
                f"{written} was written while the log was trimmed to {self._list().start}: whether it was "
                "there before cannot be told",
                fix="append again with the same producer id and sequence: what landed is recognised",
            )
        return True

    def _known(self, tip: _Tip, batch: ProducerBatch, count: int) -> OffsetRange | None:
        newest = tip.newest.get(batch.producer_id)
        if newest is None or newest.batch.sequence < batch.sequence:
            return None
        share = self._share(tip, newest, batch.sequence)
        if share is None:
            raise refusals.outdated(self._place, batch, newest.batch.sequence)
        return refusals.repeated(share, batch, count)

    def _share(self, tip: _Tip, newest: LandedBatch, sequence: int) -> LandedBatch | None:
        """Find an older share by bisection: sequences grow from segment to segment."""
        if sequence >= newest.batch.sequence:
            return newest if sequence == newest.batch.sequence else None
        producer_id = newest.batch.producer_id

        def share_at(base: int) -> LandedBatch | None:
            try:
                return self._footer(base).newest.get(producer_id)
            except FileNotFoundError:
                return None

        def sequence_at(base: int) -> int:
            share = share_at(base)
            return share.batch.sequence if share else -1

        bases = tip.listing.bases()
        found = share_at(bases[bisect_left(bases, sequence, key=sequence_at)])
        return found if found and found.batch.sequence == sequence else None
