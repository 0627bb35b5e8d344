"""Old events of a ledger. An index answers most questions about them, so their rows are rarely read."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from tidemill.core.errors import LedgerDamaged
from tidemill.core.history.index import IndexedBatch, indexed
from tidemill.core.history.past import Past
from tidemill.core.history.zones import Zone
from tidemill.core.plan.slices import BatchRange
from tidemill.core.protocol.events import Committed, Event
from tidemill.ledger.rows import NAMES, Entry, entry_of

if TYPE_CHECKING:
    from tidemill.ledger.index import Block, Blocks, LedgerIndex, Part

Rows = list[dict[str, object]]
Read = Callable[[DeltaTable, str, int, int, type[Event] | None], Rows]
Checked = Callable[[DeltaTable, int, int], Rows]

_AT_ONCE = 5_000
"""The most events held in memory at a time: about 100 MB."""


@dataclass(frozen=True, kw_only=True)
class Archive:
    """One version of a ledger's table, and the index beside it.

    `rows` reads the rows of a range. `checked` reads the events after one sequence up to and including another, and
    raises if one of them is missing. `damaged` makes the error for a damaged ledger.
    """

    table: DeltaTable
    app: str
    storage: Mapping[str, str] | None
    rows: Read
    checked: Checked
    damaged: Callable[[str], LedgerDamaged]
    _found: dict[tuple[int, int], Block] = field(default_factory=dict, init=False, repr=False)
    _opened: dict[str, tuple[Zone, ...]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def _index(self) -> LedgerIndex:
        # Importing this loads Arrow's file systems; a batch need not wait for that.
        from tidemill.ledger.index import LedgerIndex  # noqa: PLC0415

        return LedgerIndex(self.table.table_uri, self.storage)

    @cached_property
    def _newest(self) -> int:
        return self.table.transaction_version(self.app) or 0

    @cached_property
    def _blocks(self) -> Blocks:
        found = self._index.read(str(self.table.metadata().id))
        if found.through > self._newest:
            raise self.damaged(
                f"it ends at event {self._newest}, but its index goes to event {found.through}: it lost its end, or an "
                "older copy was put back"
            )
        return found

    def past(self) -> Past:
        """Summarise the batches of this ledger: the old ones from the index, the newer ones from their events."""
        old = self._old
        entries = self._entries(self._blocks.through, self._newest)
        recent = tuple(indexed(((e.sequence, e.event) for e in entries), old.with_ids))
        return replace(old, events=tuple(e.event for e in entries), recent=recent)

    @property
    def _old(self) -> Past:
        """The indexed part of the past."""
        return Past(zones=self._seen(self._blocks.blocks), parts=self._parts, load=self._load)

    def _seen(self, blocks: Sequence[Block]) -> tuple[Zone, ...]:
        self._found.update({(b.zone.first, b.zone.last): b for b in blocks})
        return tuple(b.zone for b in blocks)

    def _block(self, zone: Zone) -> Block:
        return self._found[zone.first, zone.last]

    def _parts(self, zone: Zone) -> Sequence[Zone]:
        """The zones inside a block of blocks. Empty if its object is damaged: then the events are read instead."""
        block = self._block(zone)
        if block.height and block.name not in self._opened:
            self._opened[block.name] = self._seen(self._index.parts(block) or ())
        return self._opened.get(block.name, ())

    def _load(self, zone: Zone) -> Sequence[IndexedBatch]:
        return self._batches(self._block(zone))

    def _batches(self, block: Block) -> Sequence[IndexedBatch]:
        zone = block.zone
        batches = None if block.height else self._index.batches(block)
        if batches is not None:
            return batches
        older = replace(self._old, zones=tuple(self._old.blocks(lambda z: z.first < zone.first)))
        rows = (row for part in self._by_part(zone.first - 1, zone.last) for row in part)
        return list(indexed(((_sequence(row), self._entry(row).event) for row in rows), older.with_ids))

    def index(self, edge: int, most: int | None) -> int:
        """Index events up to `edge`, at most `most` of them, and return the sequence of the last indexed event."""
        until = edge if most is None else min(edge, self._blocks.through + most)
        while self._blocks.through < until:
            before = self._blocks
            after = self._extended(before, min(until, before.through + _AT_ONCE))
            if after.through == before.through:
                break
            self.__dict__["_blocks"] = after
        return self._blocks.through

    def _extended(self, before: Blocks, until: int) -> Blocks:
        from tidemill.ledger.index import BLOCK  # noqa: PLC0415  as above

        rows = self.checked(self.table, before.through, until)
        commits = [n for n, row in enumerate(rows) if row["event"] == NAMES[Committed]]
        if not commits:
            return before
        rows = rows[: commits[-1] + 1]
        kept, opened = list(before.blocks), self._unfilled(before)
        if opened is not None:
            kept.pop()
        return self._index.write(before, kept, self._made(rows, opened, BLOCK), _sequence(rows[-1]))

    def _unfilled(self, before: Blocks) -> Part | None:
        """The last block, if it has room for more batches."""
        from tidemill.ledger.index import BLOCK, Part  # noqa: PLC0415  as above

        if not before.blocks:
            return None
        block = before.blocks[-1]
        batches = self._batches(block)
        if len(batches) >= BLOCK:
            return None
        return Part(first=block.zone.first, last=block.zone.last, batches=batches, events=block.events)

    def _made(self, rows: Rows, opened: Part | None, size: int) -> Iterator[Part]:
        """Cut the batches of these events into parts; the first part begins with the batches of `opened`."""
        from tidemill.ledger.index import Part  # noqa: PLC0415  as above

        first, held, digest = (
            (_sequence(rows[0]), [], 0) if opened is None else (opened.first, [*opened.batches], int(opened.events, 16))
        )
        left = deque(rows)
        for batch in indexed(((_sequence(row), self._entry(row).event) for row in rows), self._old.with_ids):
            held.append(batch)
            while left and _sequence(left[0]) <= batch.sequence:
                digest += _digest(left.popleft())
            if len(held) == size or not left:
                yield Part(first=first, last=batch.sequence, batches=held, events=_hex(digest))
                first, held, digest = batch.sequence + 1, [], 0

    def every(self) -> Iterator[Sequence[Entry]]:
        """Yield all events in order, and compare the indexed ones with their digests.

        Raises:
            LedgerDamaged: An event is missing or has changed since it was indexed.
        """
        for zone in self._old.blocks():
            digest = 0
            for rows in self._by_part(zone.first - 1, zone.last):
                digest += sum(map(_digest, rows))
                if _sequence(rows[-1]) == zone.last and _hex(digest) != self._block(zone).events:
                    raise self.damaged(
                        f"events {zone.first} to {zone.last} are not what they were when they were indexed"
                    )
                yield [self._entry(row) for row in rows]
        for rows in self._by_part(self._blocks.through, self._newest):
            yield [self._entry(row) for row in rows]

    def _by_part(self, after: int, until: int) -> Iterator[Rows]:
        """Yield the rows of these events, at most `_AT_ONCE` at a time."""
        for start in range(after, until, _AT_ONCE):
            yield self.checked(self.table, start, min(start + _AT_ONCE, until))

    def entries(self, after: int, only: type[Event] | None) -> Sequence[Entry]:
        """Return the events after sequence `after`, oldest first; only those of kind `only`, if given."""
        if only is None:
            return self._entries(after, self._newest)
        rows = self.rows(self.table, "sequence", after, self._newest, only)
        return [self._entry(row) for row in rows]

    def of_batches(self, batches: BatchRange, only: type[Event] | None) -> Sequence[Entry]:
        """Return the events of these batches, oldest first; only those of kind `only`, if given."""
        rows = self.rows(self.table, "batch_id", batches.from_batch - 1, batches.until_batch - 1, only)
        return [self._entry(row) for row in rows]

    def _entries(self, after: int, until: int) -> list[Entry]:
        return [self._entry(row) for row in self.checked(self.table, after, until)]

    def _entry(self, row: Mapping[str, object]) -> Entry:
        return entry_of(row, self.table.table_uri)


def _sequence(row: Mapping[str, object]) -> int:
    return int(str(row["sequence"]))


def _digest(row: Mapping[str, object]) -> int:
    """The SHA-256 of an event as a number. Digests are summed, so it does not matter how the events are split."""
    event = json.dumps([row["sequence"], row["event"], row["body"]])
    return int.from_bytes(hashlib.sha256(event.encode()).digest(), "big")


def _hex(digest: int) -> str:
    return f"{digest % 2**256:064x}"
