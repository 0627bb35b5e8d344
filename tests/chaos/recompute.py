"""What the tables must hold: the raw log once more, in plain Python, batch by batch as the ledger says they were cut.

Only the cut is taken from the ledger. What is rejected, where the watermark stands and what is late for it is found
anew here, from the raw values.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from chaos.world import DELAY, LARGE, LATENESS, SIZE, SLIDE, TOPICS
from tidemill.core.watermarks import BEGINNING, END

_SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FAR = datetime(2100, 1, 1, tzinfo=UTC)

Place = tuple[str, int]
"""A topic and a partition."""


class Row(NamedTuple):
    """A row as it is compared: how many records it stands for, and the values that follow from them."""

    key: tuple[Any, ...]
    records: int = 1
    values: tuple[Any, ...] = ()


Contents = Mapping[str, list[Row]]
"""The rows of each table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What one batch read, and whether it ended the input."""

    batch_id: int
    ranges: Mapping[Place, range]
    drain: bool = False


@dataclass(slots=True)
class Recomputation:
    """The contents of all tables; for each batch its accounts by topic and the watermark after it."""

    accounts: dict[tuple[int, str], Counter[str]] = field(default_factory=dict)
    watermarks: dict[int, int] = field(default_factory=dict)
    _sums: dict[tuple[datetime, str], list[int]] = field(default_factory=dict)
    _rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    _newest: dict[Place, int] = field(default_factory=dict)
    _watermark: int = BEGINNING

    @staticmethod
    def of(cuts: Iterable[Cut], log: Mapping[Place, list[bytes | None]]) -> Recomputation:
        """Every record of the log once, however often the batches read it."""
        made = Recomputation()
        unread = {place: set(range(len(values))) for place, values in log.items()}
        for cut in cuts:
            for place, offsets in cut.ranges.items():
                account = made.accounts.setdefault((cut.batch_id, place[0]), Counter())
                for offset in sorted(unread[place].intersection(offsets)):
                    account["read"] += 1
                    account[made._take(place, offset, log[place][offset])] += 1
                unread[place].difference_update(offsets)
            made._advance(cut)
        for place, offsets in unread.items():
            for offset in sorted(offsets):
                made._take(place, offset, log[place][offset])
        return made

    @property
    def contents(self) -> Contents:
        """The rows that the tables must hold."""
        sums = [Row(key, n, (amount,)) for key, (n, amount) in self._sums.items()]
        return {"large": [], "quarantine": [], "late": [], **self._rows, "sums": sums}

    def _take(self, place: Place, offset: int, value: bytes | None) -> str:
        """Put one record where it belongs, and say what became of it."""
        event = event_of(value)
        if event is None:
            self._rows["quarantine"].append(Row((*place, offset)))
            return "rejected"
        time = (datetime.fromisoformat(event["ts"]) - _EPOCH) // timedelta(microseconds=1)
        # The watermark itself moves only when the batch has ended.
        self._newest[place] = max(time, self._newest.get(place, time))
        user, amount = event["user"], event["amount"]
        if user == "nobody":
            return "filtered"
        starts = [s for s in _starts(time) if s + (SIZE + LATENESS) * _SECOND > self._watermark]
        for start in starts:
            found = self._sums.setdefault((_moment(start), user), [0, 0])
            found[0] += 1
            found[1] += amount
        if not starts:
            self._rows["late"].append(Row((*place, offset, "sums")))
        if amount >= LARGE:
            self._rows["large"].append(Row((event["id"], user, amount)))
        return "aggregated" if starts or amount >= LARGE else "late"

    def _advance(self, cut: Cut) -> None:
        times = [self._newest.get((t, p), BEGINNING) for t, count in TOPICS.items() for p in range(count)]
        least = BEGINNING if BEGINNING in times else min(times) - DELAY * _SECOND
        self._watermark = END if cut.drain else max(self._watermark, least)
        self.watermarks[cut.batch_id] = self._watermark


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


def _starts(time: int) -> Iterator[int]:
    """Where the windows begin that hold `time`."""
    last = time - time % (SLIDE * _SECOND)
    return iter(range(last, last - SIZE * _SECOND, -SLIDE * _SECOND))


def _moment(time: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time)
