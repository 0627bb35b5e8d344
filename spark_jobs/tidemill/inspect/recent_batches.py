"""The newest batches of a ledger, each as one value: what it read, wrote and was told, and who executed it.

`RecentBatches` remembers them, so that a page that is loaded again and again reads only what was appended since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, assert_never

from tidemill.core.history.index import asked_of
from tidemill.core.plan.amendments import Ranges, Reason
from tidemill.core.plan.slices import batch_ranges
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.events import (
    Audited,
    Cancelled,
    Claimed,
    Committed,
    Decided,
    Decision,
    Event,
    Executor,
    Forgotten,
    Planned,
    Superseded,
)
from tidemill.core.protocol.summary import account_of, broken_rules
from tidemill.core.time.missed import Missed
from tidemill.core.time.spans import PaneSpan

if TYPE_CHECKING:
    from tidemill.core.protocol.view import View
    from tidemill.ledger.ledger import Ledger
    from tidemill.ledger.rows import Entry

EVENTS_OF_A_BATCH = 3
"""What a batch leaves; one that was taken over or decided about leaves more."""


class BatchState(StrEnum):
    """How far a batch has come."""

    COMMITTED = "committed"
    OPEN = "open"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFacts:
    """A batch, as far as it has come. Times that have not come are None; `held` and `broken` count rules.

    `offsets` are those that it reads, `lag_from` the next offset of each partition after it, by topic. `watermark` and
    `newest_event` are in microseconds. `seconds` says how long each step took, if the commit says so. `decided` is what
    a person decided about it, `asked` who asked for it.
    """

    batch_id: int
    attempt: int = 1
    kind: Kind = Kind.LIVE
    state: BatchState = BatchState.OPEN
    planned_at: datetime
    started: datetime | None = None
    at: datetime | None = None
    executor: Executor
    offsets: Ranges = field(default_factory=dict)
    lag_from: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    account: Account | None = None
    accounts: Mapping[str, Account] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    published: Mapping[str, int] = field(default_factory=dict)
    panes: Mapping[str, PaneSpan] = field(default_factory=dict)
    missed: Mapping[str, tuple[Missed, ...]] = field(default_factory=dict)
    watermark: int | None = None
    newest_event: int | None = None
    held: int = 0
    broken: int = 0
    findings: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    asked: Reason | None = None
    decided: Decided | None = None
    given_up: str = ""

    @property
    def took(self) -> float | None:
        """Seconds from the start of the attempt that committed until its commit."""
        return None if self.at is None or self.started is None else (self.at - self.started).total_seconds()


def batches_of(events: Iterable[Event]) -> dict[int, BatchFacts]:
    """The batches that are planned in these events, by id. Later events of other batches are ignored."""
    found: dict[int, BatchFacts] = {}
    for event in events:
        _take(found, event)
    return found


def _take(found: dict[int, BatchFacts], event: Event) -> None:
    if isinstance(event, Planned):
        plan = event.plan
        found[plan.batch_id] = BatchFacts(
            batch_id=plan.batch_id,
            kind=plan.kind,
            planned_at=event.at,
            executor=event.executor,
            offsets=plan.reads,
            asked=asked_of(plan),
        )
    elif (known := found.get(event.batch_id)) is not None:
        found[event.batch_id] = _after(known, event)


def _after(known: BatchFacts, event: Event) -> BatchFacts:
    match event:
        case Claimed():
            return replace(known, attempt=event.attempt, executor=event.executor)
        case Audited():
            passed = [each.passed for each in event.verdict.results]
            state = BatchState.BLOCKED if event.verdict.blocks else BatchState.OPEN
            findings = tuple(map(str, event.verdict.broken))
            return replace(
                known, state=state, findings=findings, held=sum(passed), broken=len(passed) - sum(passed), decided=None
            )
        case Decided():
            opened = BatchState.OPEN if event.decision is not Decision.RETRY else known.state
            return replace(known, state=opened, decided=event)
        case Cancelled():
            return replace(known, state=BatchState.CANCELLED, given_up=event.reason)
        case Committed():
            return _committed(known, event)
        case Planned() | Superseded() | Forgotten():
            return known
        case _:
            assert_never(event)


def _committed(known: BatchFacts, commit: Committed) -> BatchFacts:
    clocks = (c.max_event_time for c in commit.position.clocks.values())
    return replace(
        known,
        state=BatchState.COMMITTED,
        attempt=commit.attempt,
        started=commit.started,
        at=commit.at,
        lag_from={name: topic.offsets for name, topic in commit.position.topics.items()},
        account=account_of(commit),
        missed=commit.missed or {},
        accounts=commit.accounts,
        versions=commit.tables,
        published=commit.published,
        panes=commit.panes,
        watermark=commit.position.watermark,
        newest_event=max((c for c in clocks if c is not None), default=None),
        findings=broken_rules(commit),
        seconds=commit.steps or {},
    )


def batches_between(ledger: Ledger, since: datetime, until: datetime, *, most: int) -> Sequence[BatchFacts]:
    """The batches that committed between two moments, however long ago, newest first; at most the newest `most`.

    Raises:
        LedgerDamaged: the ledger cannot be read.
    """
    past = ledger.past().backwards(lambda zone: zone.times[0] <= until and since <= zone.times[1])
    ids = [b.batch_id for b in islice((b for b in past if since <= b.at <= until), most)]
    entries = (entry for part in batch_ranges(ids) for entry in ledger.of_batches(part))
    found = batches_of(entry.event for entry in entries)
    return [found[batch] for batch in ids if batch in found]


class RecentBatches:
    """The newest batches of one ledger. Keep an instance: each look reads only what others have appended since."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._view: View | None = None
        self._found: dict[int, BatchFacts] = {}
        self._sequence, self._asked = 0, 0

    def look(self, last: int) -> tuple[View, Sequence[BatchFacts]]:
        """The present view, and the newest `last` batches, newest first.

        Raises:
            LedgerDamaged: the ledger cannot be read.
        """
        view = self.ledger.view()
        if last > self._asked:
            self._asked = last
            self._read_newest(last)
        elif view is not self._view:
            self._read(self.ledger.since(self._sequence + 1))
        self._view = view
        newest = sorted(self._found, reverse=True)
        for old in newest[self._asked :]:
            del self._found[old]
        return view, [self._found[batch] for batch in newest[:last]]

    def _read_newest(self, last: int) -> None:
        """Read no more events than `last` batches need: decoding them is most of the time of a first look."""
        events = last * EVENTS_OF_A_BATCH + 2
        while True:
            entries = self.ledger.entries(last=events)
            self._found = {}
            self._read(entries)
            if len(self._found) >= last or len(entries) < events:
                return
            events *= 2

    def _read(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            _take(self._found, entry.event)
            self._sequence = entry.sequence
