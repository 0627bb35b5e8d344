"""Watermarks: exclusive lower bounds of the event times still to come.

A watermark W says "no more events with event time < W". Each topic-partition has one: its greatest event time minus
the *delay* of its input. The pipeline's watermark is the least of them, without idle partitions. It never goes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidemill.core.log.offsets import TopicPartition

BEGINNING = -(2**63)
"""The watermark before any event: nothing is late."""

END = 2**63 - 1
"""The watermark after the last event: every window is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionClock:
    """The clock of one topic-partition, in microseconds.

    `max_event_time` is None until an event was accepted. `active_at` is the clock of the last batch that
    found records to read there, or of the batch that first saw the partition.
    """

    max_event_time: int | None
    active_at: int

    def seen(self, event_time: int | None, *, clock: int) -> PartitionClock:
        """The clock after a batch at `clock` that read records with at most `event_time`."""
        known = [t for t in (self.max_event_time, event_time) if t is not None]
        return PartitionClock(max_event_time=max(known, default=None), active_at=max(clock, self.active_at))

    def watermark(self, delay: int) -> int:
        """`max_event_time - delay`, or BEGINNING without an event."""
        return BEGINNING if self.max_event_time is None else self.max_event_time - delay

    def is_idle(self, *, clock: int, timeout: int | None) -> bool:
        """Whether the partition has been silent for strictly longer than `timeout`; never if `timeout` is None."""
        return timeout is not None and clock - self.active_at > timeout


def advance(
    current: int,
    clocks: Mapping[TopicPartition, PartitionClock],
    delays: Mapping[str, int],
    idle: Iterable[TopicPartition] = (),
) -> int:
    """The pipeline's watermark after a batch: never less than `current`.

    `delays` gives the delay of each topic in microseconds. If all partitions are idle, the watermark stays.
    """
    silent = frozenset(idle)
    live = [clock.watermark(delays[tp.topic]) for tp, clock in clocks.items() if tp not in silent]
    return max(current, min(live, default=current))
