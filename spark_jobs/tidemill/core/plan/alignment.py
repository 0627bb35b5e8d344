"""Fast partitions wait for slow ones: a batch reads nothing of a partition that is too far ahead in event time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemill.core.bind.flow import Flow
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.position import Position
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING

Backlog = Mapping[str, Sequence[OffsetRange]]
"""The offsets that a batch could read, by topic."""


def aligned(flow: Flow, position: Position, backlog: Backlog, *, clock: int) -> Mapping[str, tuple[OffsetRange, ...]]:
    """The offsets to read: none of partitions whose watermark is more than `max_drift` ahead of the slowest one's.

    A partition that waits has records to read, so it is not idle. Idle partitions, and those that never had an event
    and have none to read, hold nobody back. `clock` is that of the plan, in microseconds.
    """
    drift = flow.spec.max_drift
    if drift is None:
        return {topic: tuple(ranges) for topic, ranges in backlog.items()}
    timeout = None if flow.spec.idle_timeout is None else micros(flow.spec.idle_timeout)
    delays, clocks = flow.delays, position.clocks
    watermarks: dict[TopicPartition, int] = {}
    for each in (item for ranges in backlog.values() for item in ranges):
        place, known = each.topic_partition, clocks.get(each.topic_partition)
        mark = BEGINNING if known is None else known.watermark(delays[place.topic])
        if known is not None and delays[place.topic] is None and known.mark is None:
            # Where records tell the watermark, a partition that has not told any says nothing about its place in time.
            continue
        silent = not each and (mark == BEGINNING or (known is not None and known.is_idle(clock=clock, timeout=timeout)))
        if not silent:
            watermarks[place] = mark
    most = min(watermarks.values(), default=BEGINNING) + micros(drift)
    return {
        topic: tuple(_waiting(r) if watermarks.get(r.topic_partition, BEGINNING) > most else r for r in ranges)
        for topic, ranges in backlog.items()
    }


def _waiting(item: OffsetRange) -> OffsetRange:
    return OffsetRange(item.topic_partition, item.from_offset, item.from_offset)
