"""The fold of a sliding buffer: a piece is one record, and a firing is made of all records in the buffer."""

from __future__ import annotations

from tidemill.core.ordered.buffers import SlidingBuffer
from tidemill.core.ordered.firing import Dropped, Folded, Reason, State, Wake
from tidemill.core.ordered.policies import MOST_BY_TIME, CountPolicy, DeltaPolicy, Policy, TimePolicy
from tidemill.core.ordered.records import Moment, Number, Records, is_number
from tidemill.core.ordered.sliding_state import SlidingState
from tidemill.core.time.watermarks import END


class SlidingFold:
    """Folds records into sliding buffers."""

    def __init__(self, declared: SlidingBuffer) -> None:
        evict, trigger = declared.evict, declared.trigger
        self._most = _count_of(evict)
        self._evict_above = _threshold_of(evict)
        self._evict_older = evict.micros if isinstance(evict, TimePolicy) else None
        self._ages_by_clock = isinstance(evict, TimePolicy) and evict.uses_clock
        self._ages_first = isinstance(evict, TimePolicy) and declared.sorts
        self._fire_each = _count_of(trigger)
        self._fire_above = _threshold_of(trigger)
        self._period = trigger.micros if isinstance(trigger, TimePolicy) else None
        self._compares = self._evict_above is not None or self._fire_above is not None

    def fold(  # noqa: D102
        self, state: State | None, records: Records, before: Moment, after: Moment, first_piece: int = 0
    ) -> Folded:
        folded, key = Folded(), SlidingState(state, first_piece)
        data = records.data()
        if not self._ages_by_clock:
            self._age(key, before)
        if data:
            self._fire_due(key, before.clock, folded)
        if data and self._ages_by_clock:
            self._age(key, before)
        for position in data:
            self._take(key, position, records, before, folded)
        self._fire_due(key, after.clock, folded)
        self._age(key, after)
        if not key.ids:
            key.due = None
        folded.state, folded.wake = key.kept(), self._wake(key)
        return folded

    def _age(self, key: SlidingState, moment: Moment) -> None:
        """Evict what is too old now. Nobody folds a key just for that, as long as its newest record stays."""
        if self._evict_older is not None:
            key.now = max(key.now, moment.clock if self._ages_by_clock else moment.watermark)
            key.drop_older(key.now - self._evict_older)

    def _take(self, key: SlidingState, position: int, records: Records, before: Moment, folded: Folded) -> None:
        """One record: delta trigger, eviction, insertion, count trigger. What is too old is evicted at once."""
        value = records.values[position] if self._compares else None
        if self._compares and not is_number(value):
            folded.dropped.append(Dropped(position, Reason.NO_VALUE))
            return
        time = before.clock if self._ages_by_clock else records.times[position]
        if self._ages_first:
            self._age(key, Moment(watermark=time))
            key.begin_anew()
        if self._fire_above is not None:
            key.compare(value, self._fire_above, position, folded)
        self._evict(key, value, time)
        if self._evict_older is None or time >= key.now - self._evict_older:
            folded.positions.append(position)
            folded.pieces.append(key.insert(self._mark(value, time)))
        if self._fire_each is not None:
            key.inserted += 1
            if key.inserted >= self._fire_each:
                key.inserted = 0
                if key.ids:
                    key.fire(folded, position)
        if self._period is not None and key.due is None and key.ids:
            key.due = before.clock - before.clock % self._period + self._period

    def _evict(self, key: SlidingState, value: Number | None, time: int) -> None:
        """Make room for the new record."""
        if self._most is not None:
            if len(key.ids) >= self._most:
                key.drop_oldest()
        elif self._evict_above is not None and value is not None:
            while key.ids and value - key.marks[0] > self._evict_above:
                key.drop_oldest()
        elif self._evict_older is not None:
            key.now = max(key.now, time)
            key.drop_older(key.now - self._evict_older)

    def _mark(self, value: Number | None, time: int) -> Number | None:
        """What eviction compares of a record."""
        if self._evict_above is not None:
            return value
        return time if self._evict_older is not None else None

    def _fire_due(self, key: SlidingState, clock: int, folded: Folded) -> None:
        """Fire at each multiple of the period up to `clock`, with what the buffer held at that moment.

        Of more than `MOST_BY_TIME` moments at which it held records only the last one counts.
        """
        if self._period is None or clock >= END:
            return
        if key.due is not None and key.ids:
            passed = (self._full_until(key, clock) - key.due) // self._period
            key.due += passed * self._period if passed >= MOST_BY_TIME else 0
        while key.due is not None and key.due <= clock:
            if self._ages_by_clock and self._evict_older is not None:
                key.drop_older(key.due - self._evict_older)
            if key.ids:
                key.fire(folded, None)
            key.due = key.due + self._period if key.ids else None

    def _full_until(self, key: SlidingState, clock: int) -> int:
        """The last moment up to `clock` at which the buffer holds one of its records."""
        if not self._ages_by_clock or self._evict_older is None:
            return clock
        return min(clock, int(key.newest) + self._evict_older)

    def _wake(self, key: SlidingState) -> Wake:
        """When the next multiple of the period comes, or when the newest record is too old."""
        if not key.ids:
            return Wake()
        empty = None if self._evict_older is None else int(key.newest) + self._evict_older + 1
        by_clock = [at for at in (key.due, empty if self._ages_by_clock else None) if at is not None]
        return Wake(None if self._ages_by_clock else empty, min(by_clock, default=None))


def _count_of(policy: Policy) -> int | None:
    return policy.count if isinstance(policy, CountPolicy) else None


def _threshold_of(policy: Policy) -> Number | None:
    return policy.threshold if isinstance(policy, DeltaPolicy) else None
