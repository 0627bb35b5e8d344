"""What a random history of batches told: which records count, in which order, and when the watermark moved."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from amend.conftest import an_amendment, done
from machine.failing import failing
from support.ordered import Batch, Record, Result
from support.ordered_oracle import WindowOracle
from support.projects import NOW, Mill, an_event
from tidemill.core.errors import TidemillError
from tidemill.core.history.index import IndexedBatch
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.records import Moment
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.failpoints import Injected, boundaries_beside, boundaries_of
from tidemill.core.repair.state_compaction import Folding
from tidemill.core.time.times import micros
from tidemill.maintain.maintenance import maintain
from tidemill.maintain.state_compaction import fold
from tidemill.repair.rewind import rewind

USERS = ("a", "b", "c")


class Event(NamedTuple):
    second: int
    user: str
    amount: int


@dataclass
class Told:
    """The records that count, in their order, as the commits say; and what the log holds.

    `after` has, for each batch, how many records there are after it, and the watermark then. Batches run at `clock`; by
    default at the present.
    """

    mill: Mill
    disorder: int = 0
    clock: datetime | None = None
    log: dict[int, list[Event]] = field(default_factory=lambda: {0: [], 1: []})
    order: list[Event] = field(default_factory=list)
    after: list[tuple[int, int]] = field(default_factory=list)
    known: dict[int, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    def feed(self, draw: random.Random) -> None:
        for _ in range(draw.randint(0, 12)):
            partition, second = draw.randint(0, 1), len(self.order) + draw.randint(-self.disorder, 0)
            event = Event(second, draw.choice(USERS), draw.choice([-1, 1, 2, 3, 5, 8]))
            self.log[partition].append(event)
            self.mill.feed([an_event(*event)], partition=partition)

    def run(self) -> None:
        try:
            self.mill.run(clock=self.clock)
        finally:
            ledger = self.mill.project.ledger(self.mill.name)
            # The answer of a commit may be lost.
            self._note(ledger.past().batches() if ledger.exists else ())

    def _note(self, batches: Iterable[IndexedBatch]) -> None:
        for each in batches:
            if each.kind is Kind.LIVE and each.batch_id not in self.seen:
                self.seen.add(each.batch_id)
                for item in sorted(each.ranges.get("events", ()), key=lambda r: r.topic_partition.partition):
                    self.order += self.log[item.topic_partition.partition][item.from_offset : item.until_offset]
                self.known[each.batch_id] = len(self.order)
                self.after.append((len(self.order), each.after))

    def rewind(self, to: int) -> None:
        done(rewind(an_amendment(self.mill), to))
        del self.order[self.known[to] :]
        self.known = {batch: count for batch, count in self.known.items() if batch <= to}
        del self.after[len(self.known) :]


def fired(told: Told, declared: EventWindows) -> Iterator[tuple[str, Sequence[int], Result]]:
    """What the plain rule says of these records: of each firing its user, and the amounts of all records of this."""
    for user in USERS:
        oracle, batches, first = WindowOracle(declared), list[Batch](), 0
        own = [(number, event) for number, event in enumerate(told.order) if event.user == user]
        for until, watermark in told.after:
            part = (event for number, event in own if first <= number < until)
            records = [Record(micros(NOW) + event.second * 1_000_000, event.amount) for event in part]
            batches.append(Batch(records, Moment(watermark)))
            first = until
        oracle.run(batches, Moment())
        yield from ((user, [event.amount for _, event in own], each) for each in oracle.results)


def added(amounts: Sequence[int], numbers: Sequence[int]) -> tuple[int, int | None]:
    """Count and sum of some of the amounts."""
    return len(numbers), sum(amounts[i] for i in numbers) if numbers else None


def shown(mill: Mill) -> list[tuple[str, int, int | None]]:
    """User, count and sum of each published row."""
    return sorted(((r["user"], r["n"], r["amount"]) for r in mill.published()), key=str)


def places_of(mill: Mill, *, beside: bool = False) -> Sequence[str]:
    """The boundaries of a batch, and those of what runs `beside` batches."""
    flow = mill.project.pipeline(mill.name)
    return [boundary.name for boundary in (*boundaries_of(flow), *(boundaries_beside(flow) if beside else ()))]


def disturbed(told: Told, draw: random.Random, places: Sequence[str], act: Callable[[], object]) -> None:
    """Act, perhaps failing at one of the places; or fold, maintain or rewind."""
    mill = told.mill
    match draw.randint(0, 7):
        case 0 | 1:
            with failing(f"{draw.choice(['before', 'after'])}:{draw.choice(places)}=raise"), suppress(Injected):
                act()
        case 2:
            list(fold(an_amendment(mill), Folding(group=3, overlap=0.1, groups=1)))
        case 3:
            list(maintain(mill.project, mill.name, keep=timedelta(0), now=datetime.now(UTC)))
        case 4 if told.known:
            with suppress(TidemillError):
                told.rewind(draw.choice(list(told.known)))
        case _:
            act()
