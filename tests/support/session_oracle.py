"""Sessions that fire after each two records and when the watermark passes their end: the rule, written down plainly.

Records that come later are late, so no session fires after its end. Nothing here is shared with the fold.
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


class SessionOracle:
    """The sessions of one key, with `gap` in microseconds. `results` has all firings, `standing` those that none took
    back or replaced."""

    def __init__(self, gap: int, mode: str) -> None:
        self.gap, self.mode = gap, mode
        self.open, self.results, self.replaced = list[_Session](), list[Result](), list[Result]()

    @property
    def standing(self) -> list[Result]:
        return [each for each in self.results if each not in self.replaced]

    def run(self, batches: Iterable[Batch], before: Moment) -> None:
        number = 0
        for batch in batches:
            for record in batch.records:
                if record.time + self.gap > before.watermark < END:
                    self._join(record.time, number)
                number += 1
            before = batch.after
            closed = [each for each in self.open if each.end <= before.watermark or before.watermark == END]
            for session in closed:
                self.open.remove(session)
                self._fire(session, Timing.ON_TIME)

    def _join(self, time: int, number: int) -> None:
        touched = [each for each in self.open if each.start <= time + self.gap and time <= each.end]
        merged = _Session(
            min([time, *(each.start for each in touched)]),
            max([time + self.gap, *(each.end for each in touched)]),
            sorted([number, *(n for each in touched for n in each.records)]),
            sorted([number, *(n for each in touched for n in each.new)]),
            [result for each in touched for result in each.standing],
            max((each.index for each in touched), default=0),
        )
        self.open = [*(each for each in self.open if each not in touched), merged]
        if len(merged.new) >= EVERY:
            self._fire(merged, Timing.EARLY)

    def _fire(self, session: _Session, timing: Timing) -> None:
        records = session.new if self.mode == "discarding" else session.records
        taken = [(each.window, each.records) for each in session.standing if each.window is not None]
        result = Result(
            Window(session.start, session.end),
            timing,
            session.index,
            -1,
            timing is Timing.ON_TIME,
            tuple(records),
            None,
            tuple(taken) if "retracting" in self.mode else (),
        )
        self.results.append(result)
        self.replaced += session.standing
        session.standing, session.new, session.index = [result], [], session.index + 1
