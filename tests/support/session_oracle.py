"""Sessions that fire after each two records, when the watermark passes their end, and with each later record: the rule,
written down plainly.

Nothing here is shared with the fold. The trigger is `AfterWatermark(early=AfterCount(2), late=AfterCount(1))`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from support.ordered import Batch, Result
from tidemill.core.ordered.records import Moment
from tidemill.core.time.panes import Window
from tidemill.core.time.timing import Timing
from tidemill.core.time.watermarks import END

EVERY = 2
"""A session fires early when so many records have joined it since it fired."""


@dataclass
class _Session:
    start: int
    end: int
    records: list[int] = field(default_factory=list)
    new: list[int] = field(default_factory=list)
    standing: list[Result] = field(default_factory=list)
    index: int = 0
    spoken: int = 0


class SessionOracle:
    """The sessions of one key; `gap` and `lateness` are in microseconds. `results` has all firings, `standing` those
    that none took back or replaced, `late` the numbers of records that were late.

    Of an engine, a record is late if the session that it makes alone is closed. A fold alone takes it if it joins
    another one: `alone` is False.
    """

    def __init__(self, gap: int, mode: str, lateness: int = 0, *, alone: bool = True) -> None:
        self.gap, self.mode, self.lateness, self.alone = gap, mode, lateness, alone
        self.open, self.results, self.replaced = list[_Session](), list[Result](), list[Result]()
        self.late = list[int]()

    @property
    def standing(self) -> list[Result]:
        return [each for each in self.results if each not in self.replaced]

    def run(self, batches: Iterable[Batch], before: Moment) -> None:
        number = 0
        for batch in batches:
            for record in batch.records:
                self._take(record.time, number, before.watermark)
                number += 1
            for session in sorted(self.open, key=lambda each: each.end):
                self._pass(session, before.watermark, batch.after.watermark)
            before = batch.after

    def _closed(self, end: int, watermark: int) -> bool:
        return end + self.lateness <= watermark or watermark == END

    def _take(self, time: int, number: int, watermark: int) -> None:
        touched = [each for each in self.open if each.start <= time + self.gap and time <= each.end]
        if self._closed(time + self.gap, watermark) and (self.alone or not touched):
            self.late.append(number)
            return
        merged = _Session(
            min([time, *(each.start for each in touched)]),
            max([time + self.gap, *(each.end for each in touched)]),
            sorted([number, *(n for each in touched for n in each.records)]),
            sorted([number, *(n for each in touched for n in each.new)]),
            [result for each in touched for result in each.standing],
            max((each.index for each in touched), default=0),
            max((each.spoken for each in touched), default=0),
        )
        self.open = [*(each for each in self.open if each not in touched), merged]
        if merged.end <= watermark:
            self._fire(merged, Timing.LATE, position=number)
        elif len(merged.new) >= EVERY:
            self._fire(merged, Timing.EARLY, position=number)

    def _pass(self, session: _Session, before: int, after: int) -> None:
        closed = self._closed(session.end, after)
        if before < session.end <= after:
            self._fire(session, Timing.ON_TIME, last=closed)
        if closed:
            self.open.remove(session)

    def _fire(self, session: _Session, timing: Timing, *, position: int | None = None, last: bool = False) -> None:
        records = session.new if self.mode == "discarding" else session.records
        taken = [(each.window, each.records) for each in session.standing if each.window is not None]
        early = timing is Timing.EARLY
        result = Result(
            Window(session.start, session.end),
            timing,
            session.index,
            -1 if early else session.spoken,
            last,
            tuple(records),
            position,
            tuple(taken) if "retracting" in self.mode else (),
        )
        self.results.append(result)
        self.replaced += session.standing
        session.standing, session.new, session.index = [result], [], session.index + 1
        session.spoken += not early
