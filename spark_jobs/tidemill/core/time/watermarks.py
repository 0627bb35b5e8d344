"""Watermarks: exclusive lower bounds of the event times still to come.

A watermark W says "no more events with event time < W". Each topic-partition has one: its greatest event time minus
the *delay* of its input; or, where the input says so, the greatest *mark*: a watermark that a record itself tells, or
that of the pipeline which sends the records. The pipeline's watermark is the least of them, without idle partitions. It
never goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from tidemill.core.log.offsets import TopicPartition

BEGINNING = -(2**63)
"""The watermark before any event: nothing is late."""

END = 2**63 - 1
"""The watermark after the last event: every window is closed."""


class Furthest(NamedTuple):
    """How far accepted records of a topic-partition came: event time and mark, in microseconds; None where none has."""

    event_time: int | None
    mark: int | None = None


Reached = Mapping[TopicPartition, Furthest]
"""How far the records of a batch came, for partitions with accepted ones."""


Delays = Mapping[str, int | None]
"""The delay of each topic in microseconds, or None if its records tell the watermark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionClock:
    """The clock of one topic-partition, in microseconds.

    `max_event_time` is None until an event was accepted, `mark` until an accepted record, or the pipeline that sends
    the records, told a watermark. `active_at` is the clock of the last batch that found records to read there, or of
    the batch that first saw the partition.
    """

    max_event_time: int | None
    active_at: int
    mark: int | None = None

    def seen(self, furthest: Furthest | None, *, clock: int) -> PartitionClock:
        """The clock after a batch at `clock` that read records; None: it accepted none of them."""
        event_time, mark = furthest or (None, None)
        return PartitionClock(
            max_event_time=_greater(self.max_event_time, event_time),
            active_at=max(clock, self.active_at),
            mark=_greater(self.mark, mark),
        )

    def told(self, mark: int | None) -> PartitionClock:
        """The clock once somebody else has told a watermark; None: nobody has."""
        return replace(self, mark=_greater(self.mark, mark))

    def watermark(self, delay: int | None) -> int:
        """`max_event_time - delay`; where `delay` is None, `mark`. BEGINNING if there is none yet."""
        if delay is None:
            return BEGINNING if self.mark is None else self.mark
        return BEGINNING if self.max_event_time is None else self.max_event_time - delay

    def is_idle(self, *, clock: int, timeout: int | None) -> bool:
        """Whether the partition has been silent for strictly longer than `timeout`; never if `timeout` is None."""
        return timeout is not None and clock - self.active_at > timeout


def lagging(
    watermark: int, least: int | None, lags: Mapping[str, int], before: Callable[[str], int]
) -> Mapping[str, int] | None:
    """The watermarks of tables that are to stay so many microseconds behind; only of those that do, or None.

    Each is what it would be if the delays were so much longer: `least` minus its lag, and never less than it was
    `before`. `watermark` is the pipeline's. At the end of the log, no table stays behind.
    """
    if watermark in (BEGINNING, END):
        return None
    reached = BEGINNING if least is None else least
    found = {table: max(before(table), reached - lag, BEGINNING) for table, lag in lags.items()}
    return {table: at for table, at in found.items() if at < watermark} or None


def _greater(one: int | None, other: int | None) -> int | None:
    return max((t for t in (one, other) if t is not None), default=None)


def advance(
    current: int,
    clocks: Mapping[TopicPartition, PartitionClock],
    delays: Delays,
    idle: Iterable[TopicPartition] = (),
) -> int:
    """The pipeline's watermark after a batch: never less than `current`.

    If all partitions are idle, the watermark stays.
    """
    return max(current, current if (found := least(clocks, delays, idle)) is None else found)


def least(
    clocks: Mapping[TopicPartition, PartitionClock],
    delays: Delays,
    idle: Iterable[TopicPartition] = (),
) -> int | None:
    """The least watermark of the partitions that are not idle; None if all are."""
    silent = frozenset(idle)
    return min((clock.watermark(delays[tp.topic]) for tp, clock in clocks.items() if tp not in silent), default=None)
