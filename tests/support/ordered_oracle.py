"""What ordered windows give, computed anew from the whole history at each step: plain, slow, and without states.

Nothing here is shared with the fold but the names of what was declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from support.ordered import Batch, Record, Result
from tidemill.core.ordered import triggers as t
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.evictors import CountEvictor, DeltaEvictor, TimeEvictor
from tidemill.core.ordered.policies import CountPolicy, DeltaPolicy, PunctuationPolicy, TimePolicy
from tidemill.core.ordered.records import Moment
from tidemill.core.time.panes import Window
from tidemill.core.time.times import MICROSECOND
from tidemill.core.time.timing import Timing
from tidemill.core.time.watermarks import END

RECORD, TIME, FIRED = "record", "time", "fired"


class Event(NamedTuple):
    """Something that happened to a window, the clock then, and whether its end had been passed.

    `elapsed` is filled when it is found that a delay is over because of it.
    """

    kind: str
    clock: int
    passed: bool
    elapsed: list[bool]


class Status(NamedTuple):
    ready: bool
    finished: bool


def status(trigger: Any, history: Sequence[Event]) -> Status:  # noqa: C901, PLR0912  a case for each trigger
    """Whether a trigger that began with this history is ready at its end, and whether it is finished."""
    match trigger:
        case t.AfterCount(count):
            return _once(
                [sum(e.kind == RECORD for e in history[: i + 1]) >= count for i in range(len(history))], history
            )
        case t.AfterProcessingTime():
            first = next((e.clock for e in history if e.kind == RECORD), None)
            over = [e.kind == TIME and first is not None and e.clock >= first + trigger.micros for e in history]
            if over and over[-1] and not any(over[:-1]):
                history[-1].elapsed.append(True)
            return _once([any(over[: i + 1]) for i in range(len(history))], history)
        case t.Never():
            return Status(False, False)
        case t.DefaultTrigger():
            return status(t.AfterWatermark(late=t.AfterCount(1)), history)
        case t.AfterWatermark(early, late):
            at = next((i for i, e in enumerate(history) if e.kind == FIRED and e.passed), None)
            if at is None:
                soon = early is not None and status(t.Repeatedly(early), history).ready
                return Status(soon or (bool(history) and history[-1].passed), False)
            if late is None:
                return Status(False, True)
            return Status(status(t.Repeatedly(late), history[at + 1 :]).ready, False)
        case t.Repeatedly(one):
            begin = 0
            for i in range(len(history)):
                if status(one, history[begin : i + 1]).finished:
                    begin = i + 1
            return Status(status(one, history[begin:]).ready, False)
        case t.AfterEach(triggers=several):
            begin, on = 0, 0
            for i in range(len(history)):
                if on < len(several) and status(several[on], history[begin : i + 1]).finished:
                    begin, on = i + 1, on + 1
            return Status(on < len(several) and status(several[on], history[begin:]).ready, on == len(several))
        case t.AfterAll(triggers=several):
            all_of = [status(one, history) for one in several]
            return Status(all(s.ready for s in all_of), all(s.finished for s in all_of))
        case t.AfterAny(triggers=several):
            any_of = [status(one, _own(one, history)) for one in several]
            return Status(any(s.ready for s in any_of), any(s.finished for s in any_of))
        case t.OrFinally(one, until):
            return status(t.AfterAny(one, until), history)
    raise AssertionError(trigger)


def _own(trigger: Any, history: Sequence[Event]) -> list[Event]:
    """The history of one trigger of several: without the firings for which it was not ready."""
    own: list[Event] = []
    for event in history:
        if event.kind != FIRED or status(trigger, own).ready:
            own.append(event)
    return own


def _once(ready: list[bool], history: Sequence[Event]) -> Status:
    finished = any(r and e.kind == FIRED for r, e in zip(ready, history, strict=True))
    return Status(bool(ready) and ready[-1], finished)


@dataclass
class _Window:
    """One aligned window, from its first record on."""

    window: Window
    history: list[Event] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    fired: list[Result] = field(default_factory=list)
    new: int = 0
    done: bool = False


class WindowOracle:
    """Aligned windows with a trigger."""

    def __init__(self, declared: EventWindows) -> None:
        self.declared, self.windows = declared, dict[Window, _Window]()
        self.results, self.dropped, self.count = list[Result](), list[tuple[int, str, Window | None]](), 0
        self.records = list[Record]()

    def run(self, batches: Iterable[Batch], before: Moment) -> None:
        for batch in batches:
            for record in batch.records:
                self.records.append(record)
                if isinstance(self.declared.evictor, DeltaEvictor) and record.value is None:
                    self.dropped.append((self.count, "no_value", None))
                    self.count += 1
                    continue
                for window in self.declared.windows.windows_of(record.time):  # type: ignore[union-attr]
                    self._record(window, before)
                self.count += 1
            for each in sorted(self.windows.values(), key=lambda w: (w.window.end, w.window.start)):
                self._time(each, before, batch.after)
            before = batch.after

    def _closed(self, window: Window, watermark: int) -> bool:
        return window.end + self.declared.lateness <= watermark or watermark == END

    def _record(self, window: Window, before: Moment) -> None:
        if self._closed(window, before.watermark):
            self.dropped.append((self.count, "late", window))
            return
        each = self.windows.setdefault(window, _Window(window))
        if each.done:
            self.dropped.append((self.count, "finished", window))
            return
        passed = window.end <= before.watermark
        each.records.append(self.count)
        each.new += 1
        each.history.append(Event(RECORD, before.clock, passed, []))
        if status(self.declared.trigger, each.history).ready:
            self._fire(each, Timing.LATE if passed else Timing.EARLY, self.count, before.clock, passed)

    def _time(self, each: _Window, before: Moment, after: Moment) -> None:
        closed, passed = self._closed(each.window, after.watermark), each.window.end <= after.watermark
        if not each.done:
            event = Event(TIME, after.clock, passed, [])
            each.history.append(event)
            timing = Timing.EARLY
            if passed:
                timing = Timing.ON_TIME if each.window.end > before.watermark else Timing.LATE
            ready = status(self.declared.trigger, each.history).ready
            if ready and (event.elapsed or timing is Timing.ON_TIME):
                self._fire(each, timing, None, after.clock, passed, closed=closed)
            elif closed and each.new:
                self._tell(each, timing, None, last=True)
        if closed:
            del self.windows[each.window]

    def _fire(
        self, each: _Window, timing: Timing, position: int | None, clock: int, passed: bool, *, closed: bool = False
    ) -> None:
        each.history.append(Event(FIRED, clock, passed, []))
        each.done = status(self.declared.trigger, each.history).finished
        if each.new or (timing is Timing.ON_TIME and self.declared.empty_on_time):
            self._tell(each, timing, position, last=each.done or closed)

    def _tell(self, each: _Window, timing: Timing, position: int | None, *, last: bool) -> None:
        mode = str(self.declared.accumulation)
        if mode == "discarding":
            each.records = each.records[len(each.records) - each.new :]
        records = each.records
        if self.declared.evictor is not None:
            each.records = self._kept(records)
            records = records if self.declared.evictor.after else each.records
        retracts = ((each.window, each.fired[-1].records),) if "retracting" in mode and each.fired else ()
        spoken = sum(one.timing is not Timing.EARLY for one in each.fired)
        nonspeculative = -1 if timing is Timing.EARLY else spoken
        result = Result(each.window, timing, len(each.fired), nonspeculative, last, tuple(records), position, retracts)
        each.fired.append(result)
        self.results.append(result)
        each.new = 0

    def _kept(self, numbers: list[int]) -> list[int]:
        """What an evictor leaves of these records."""
        evictor, held = self.declared.evictor, [self.records[i] for i in numbers]
        match evictor:
            case CountEvictor(count):
                return [i for at, i in enumerate(numbers) if at >= len(numbers) - count]
            case TimeEvictor():
                newest = max([record.time for record in held], default=0)
                return [i for i in numbers if newest - self.records[i].time <= evictor.length // MICROSECOND]  # type: ignore[operator,return-value]
            case DeltaEvictor():
                return [i for i in numbers if not _above(held[-1], self.records[i]) >= evictor.threshold]
        return numbers


def around_records(size: int, batches: Iterable[Batch], before: Moment) -> list[tuple[Window, tuple[int, ...]]]:
    """The windows of `size` that records define, in the order in which they fire, as numbers of records."""
    found, taken, number = [], list[tuple[int, int]](), 0
    for batch in batches:
        for record in batch.records:
            if record.time + size > before.watermark < END:
                taken.append((record.time, number))
            number += 1
        windows = {Window(time + 1 + shift, time + 1 + shift + size) for time, _ in taken for shift in (-size, 0)}
        for window in sorted(windows):
            inside = tuple(each for time, each in taken if window.start <= time < window.end)
            passed = window.end <= batch.after.watermark or batch.after.watermark == END
            if inside and passed and window.end > before.watermark:
                found.append((window, inside))
        before = batch.after
    return found


def buffered(
    declared: TumblingBuffer | SlidingBuffer, records: Sequence[Record], ages: Sequence[int] | None = None
) -> list[list[int]]:
    """The firings of a buffer of all these records that need no clock, as numbers of records.

    `ages` has for each record the time that has come before it: what is too old by then is evicted first.
    """
    if isinstance(declared, TumblingBuffer):
        return _tumbled(declared.flush, records)
    return _slid(declared.evict, declared.trigger, records, ages)


def aged(declared: SlidingBuffer, batches: Sequence[Batch], before: Moment) -> list[list[int]]:
    """The firings, as numbers of records, of a buffer from which the watermark evicts, too, not only newer records."""
    moments = [before, *(batch.after for batch in batches)]
    ages = [moment.watermark for moment, batch in zip(moments, batches, strict=False) for _ in batch.records]
    return buffered(declared, [record for batch in batches for record in batch.records], ages)


def late_records(batches: Iterable[Batch], before: Moment) -> set[int]:
    """The numbers of the records that come behind the watermark."""
    found, number = set(), 0
    for batch in batches:
        found |= {number + i for i, record in enumerate(batch.records) if record.time < before.watermark}
        number, before = number + len(batch.records), batch.after
    return found


def buffered_by_time(
    declared: TumblingBuffer | SlidingBuffer, batches: Sequence[Batch], before: Moment
) -> list[list[int]]:
    """The firings of a buffer that takes the records that are not late, and passed in the end, by event time."""
    records, late = [record for batch in batches for record in batch.records], late_records(batches, before)
    passed = [i for i, each in enumerate(records) if i not in late and each.time < batches[-1].after.watermark]
    order = sorted(passed, key=lambda i: (records[i].time, records[i].place or ("", 0, i)))
    found = buffered(declared, [records[i] for i in order], [records[i].time for i in order])
    return [sorted(order[i] for i in fired) for fired in found]


def _tumbled(flush: Any, records: Sequence[Record]) -> list[list[int]]:
    fires, buffer = [], list[int]()
    for i, record in enumerate(records):
        if isinstance(flush, PunctuationPolicy) and record.marker:
            fires.append(buffer)
            buffer = []
        if record.marker or (isinstance(flush, DeltaPolicy) and record.value is None):
            continue
        if isinstance(flush, DeltaPolicy) and buffer and _above(record, records[buffer[0]]) > flush.threshold:
            fires.append(buffer)
            buffer = []
        buffer = [*buffer, i]
        if isinstance(flush, CountPolicy) and len(buffer) == flush.count:
            fires.append(buffer)
            buffer = []
    return fires


def _slid(  # noqa: C901  in the order of SPL
    evict: Any, trigger: Any, records: Sequence[Record], ages: Sequence[int] | None
) -> list[list[int]]:
    fires, buffer, compared, since, newest = [], list[int](), None, 0, None
    for i, record in enumerate(records):
        if record.marker or (record.value is None and DeltaPolicy in (type(evict), type(trigger))):
            continue
        if isinstance(evict, TimePolicy):
            if ages is not None:
                newest = max(ages[i], ages[i] if newest is None else newest)
                buffer = [each for each in buffer if records[each].time >= newest - evict.micros]
            newest = record.time if newest is None else max(newest, record.time)
        if isinstance(trigger, DeltaPolicy):
            compared = i if compared is None else compared
            if _above(record, records[compared]) > trigger.threshold:
                fires += [buffer] if buffer else []
                compared = i
        if isinstance(evict, CountPolicy):
            buffer = buffer[-evict.count + 1 :] if evict.count > 1 else []
        elif isinstance(evict, DeltaPolicy):
            while buffer and _above(record, records[buffer[0]]) > evict.threshold:
                buffer = buffer[1:]
        elif newest is not None:
            buffer = [each for each in buffer if records[each].time >= newest - evict.micros]
        is_old = isinstance(evict, TimePolicy) and newest is not None and record.time < newest - evict.micros
        buffer, since = buffer if is_old else [*buffer, i], since + 1
        if isinstance(trigger, CountPolicy) and since == trigger.count:
            fires += [buffer] if buffer else []
            since = 0
    return fires


def _above(record: Record, other: Record) -> float:
    assert record.value is not None
    assert other.value is not None
    return record.value - other.value
