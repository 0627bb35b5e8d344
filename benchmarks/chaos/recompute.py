"""What the tables must hold: the raw log once more, in plain Python, in the steps of which the ledger tells.

Only what each step read, by which wording, and what somebody had decided, is taken from the ledger. What is rejected
or left out, where the watermark stands and what is late for it is found anew here, from the raw values.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from chaos.by_kind import Fact, by_kind
from chaos.world import DELAY, LARGE, LATENESS, SIZE, TOPICS, WORDINGS
from tidemill.core.plan.work import Kind
from tidemill.core.time.watermarks import BEGINNING, END

_SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FAR = datetime(2100, 1, 1, tzinfo=UTC)

Place = tuple[str, int]
"""A topic and a partition."""

PLACES = frozenset((topic, number) for topic, count in TOPICS.items() for number in range(count))

Log = Mapping[Place, list[bytes | None]]
"""The values of every partition, by offset."""


class Row(NamedTuple):
    """A row as it is compared: how many records it stands for, and the values that follow from them."""

    key: tuple[Any, ...]
    records: int = 1
    values: tuple[Any, ...] = ()


Contents = Mapping[str, list[Row]]
"""The rows of each table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a committed batch did.

    It read `ranges`, and may have ended the input. A backfill `completes` its job, or `gives_up`; a repair takes `late`
    records or rejected ones; a rewind goes `back_to` a batch.

    It was planned by one `wording` of the declaration, which somebody had `decided` on or not. It saw the partitions
    that the log had `shown`, knew that others were `missing`, and somebody may have said with it that some are `gone`.
    """

    batch_id: int
    kind: Kind = Kind.LIVE
    ranges: Mapping[Place, tuple[range, ...]]
    drain: bool = False
    completes: bool = False
    gives_up: bool = False
    late: bool = False
    back_to: int = 0
    wording: str = "plain"
    decided: str | None = None
    shown: frozenset[Place] = PLACES
    missing: frozenset[Place] = frozenset()
    gone: frozenset[Place] = frozenset()

    @property
    def ignored(self) -> frozenset[str]:
        """Whose records it left out: what its numbers mean."""
        return WORDINGS[self.wording][1]

    @property
    def records(self) -> Iterator[tuple[Place, int]]:
        """Every record that it read."""
        return ((place, offset) for place, parts in self.ranges.items() for part in parts for offset in part)


@dataclass(slots=True)
class _State:
    """What became of each record so far, and of how much of the log. `job` is what an open backfill has read.

    Numbers mean that some users are `ignored`; None before they mean anything. `gone` is what somebody declared so.
    `order` is that of the live batches, and in each that of its places, by topic and partition.
    """

    fates: dict[tuple[Place, int], str] = field(default_factory=dict)
    order: list[tuple[Place, int]] = field(default_factory=list)
    reached: dict[Place, int] = field(default_factory=dict)
    newest: dict[Place, int] = field(default_factory=dict)
    watermark: int = BEGINNING
    job: set[tuple[Place, int]] = field(default_factory=set)
    ignored: frozenset[str] | None = None
    gone: frozenset[Place] = frozenset()


class Recomputation:
    """The contents of all tables; of each live batch the accounts by topic, of each batch the watermark after it.

    `lost` and `doubled` are offsets that no live batch read, or more than one, rewinds apart. `wrong` are batches that
    should have been refused. Records of `large` amounts are rows of that table. With `kinds`, there are tables for
    which no record is late.
    """

    def __init__(self, steps: Iterable[Step], log: Log, *, large: float = LARGE, kinds: bool = False) -> None:
        self.accounts: dict[tuple[int, str], Counter[str]] = {}
        self.watermarks: dict[int, int] = {}
        self.lost: list[tuple[Place, int]] = []
        self.doubled: list[tuple[Place, int]] = []
        self.wrong: list[str] = []
        self._log, self._state, self._large, self._kinds = log, _State(), large, kinds
        self._past = {0: deepcopy(self._state)}
        for step in steps:
            self._follow(step)
            self.watermarks[step.batch_id] = self._state.watermark
            self._past[step.batch_id] = deepcopy(self._state)
        for place, values in log.items():
            self._lose(place, len(values))

    @property
    def contents(self) -> Contents:
        """The rows that the tables must hold, when the input has ended."""
        sums: dict[tuple[Any, ...], list[int]] = {}
        found: dict[str, list[Row]] = {"large": [], "quarantine": [], "late": []}
        for (place, offset), fate in self._state.fates.items():
            if fate == "rejected":
                found["quarantine"].append(Row((*place, offset)))
            elif fate == "late":
                found["late"].append(Row((*place, offset, "sums")))
            if fate not in ("aggregated", "late"):
                continue
            event = event_of(self._log[place][offset]) or {}
            if event["amount"] >= self._large:
                found["large"].append(Row((event["id"], event["user"], event["amount"])))
            if fate == "aggregated":
                time = _time(event)
                start = _EPOCH + timedelta(microseconds=time - time % (SIZE * _SECOND))
                total = sums.setdefault((start, event["user"]), [0, 0])
                total[0] += 1
                total[1] += event["amount"]
        found["sums"] = [Row(key, n, (amount,)) for key, (n, amount) in sums.items()]
        return {**found, **self._contents_by_kind} if self._kinds else found

    @property
    def _contents_by_kind(self) -> Contents:
        counted = [r for r in self._state.order if self._state.fates[r] in ("aggregated", "late")]
        events = [event_of(self._log[place][offset]) or {} for place, offset in counted]
        found = by_kind([Fact(e["user"], datetime.fromisoformat(e["ts"]), e["amount"]) for e in events])
        return {table: [Row(*row) for row in rows] for table, rows in found.items()}

    def _follow(self, step: Step) -> None:
        state = self._state
        match step.kind:
            case Kind.LIVE:
                self._read(step)
            case Kind.REPAIR if step.late:
                self._check_meaning(step)
                self._admit([r for r in step.records if state.fates.get(r) == "late"], step.ignored)
            case Kind.BACKFILL:
                state.job.update(step.records)
                if step.completes and not step.gives_up:
                    self._check_meaning(step)
                    self._admit([r for r in state.job if r in state.fates], step.ignored)
                if step.completes:
                    state.job.clear()
            case Kind.REWIND:
                self._state = deepcopy(self._past[step.back_to])
            case _:
                pass

    def _read(self, step: Step) -> None:
        state = self._state
        self._check_meaning(step)
        self._check_missing(step)
        state.ignored = step.ignored
        for place, parts in sorted(step.ranges.items()):
            account = self.accounts.setdefault((step.batch_id, place[0]), Counter())
            for part in parts:
                self._lose(place, part.start)
                for offset in part:
                    if offset < state.reached.get(place, 0):
                        self.doubled.append((place, offset))
                    account["read"] += 1
                    account[self._judge(place, offset)] += 1
                state.reached[place] = max(part.stop, state.reached.get(place, 0))
        times = [state.newest.get(place, BEGINNING) for place in step.shown]
        least = BEGINNING if BEGINNING in times or not times else min(times) - DELAY * _SECOND
        state.watermark = END if step.drain else max(state.watermark, least)

    def _judge(self, place: Place, offset: int) -> str:
        """What becomes of a record, and how it is counted."""
        event, state = event_of(self._log[place][offset]), self._state
        if event is None:
            fate = "rejected"
        elif event["user"] in (state.ignored or ()):
            fate = "filtered"
        else:
            time = _time(event)
            end = time - time % (SIZE * _SECOND) + SIZE * _SECOND
            fate = "late" if end + LATENESS * _SECOND <= state.watermark else "aggregated"
        if event is not None:
            # The watermark itself moves only when the batch has ended.
            state.newest[place] = max(_time(event), state.newest.get(place, BEGINNING))
        state.fates[place, offset] = fate
        state.order.append((place, offset))
        elsewhere = self._kinds or (event is not None and event["amount"] >= self._large)
        return "aggregated" if fate == "late" and elsewhere else fate

    def _admit(self, records: Iterable[tuple[Place, int]], ignored: frozenset[str]) -> None:
        """Take records again, by what numbers mean now; none of them is late any more."""
        for place, offset in records:
            event = event_of(self._log[place][offset])
            if event is not None:
                self._state.fates[place, offset] = "filtered" if event["user"] in ignored else "aggregated"

    def _check_meaning(self, step: Step) -> None:
        """What numbers mean changes with a live batch on which somebody decided, and with nothing else."""
        before = self._state.ignored
        if step.decided is not None and step.decided != step.wording:
            self.wrong.append(f"batch {step.batch_id}: was decided for {step.decided!r}, and took {step.wording!r}")
        if before not in (None, step.ignored) and step.decided is None:
            self.wrong.append(f"batch {step.batch_id}: leaves out {sorted(step.ignored)} though nobody decided it")

    def _check_missing(self, step: Step) -> None:
        """A batch goes on without a partition only when somebody has said so, and forgets none."""
        state = self._state
        state.gone |= step.gone
        for place in sorted(step.missing - state.gone):
            self.wrong.append(f"batch {step.batch_id}: went on without {place}, which nobody declared gone")
        for place in sorted(state.reached.keys() - step.shown - step.missing):
            self.wrong.append(f"batch {step.batch_id}: forgot {place}")
        state.gone -= step.shown

    def _lose(self, place: Place, until: int) -> None:
        """Everything up to there must have been read; what was not must be in the tables all the same."""
        for offset in range(self._state.reached.get(place, 0), until):
            self.lost.append((place, offset))
            self._judge(place, offset)
        self._state.reached[place] = max(until, self._state.reached.get(place, 0))


def event_of(value: bytes | None) -> dict[str, Any] | None:
    """The event, or None when no batch may take the record."""
    try:
        event = json.loads((value or b"").decode())
        good = (
            isinstance(event["id"], int)
            and isinstance(event["user"], str)
            and event["amount"] <= 1000
            and datetime.fromisoformat(event["ts"]) < _FAR
        )
    except (ValueError, KeyError, TypeError):
        return None
    return dict(event) if good else None


def _time(event: Mapping[str, Any]) -> int:
    return (datetime.fromisoformat(event["ts"]) - _EPOCH) // timedelta(microseconds=1)
