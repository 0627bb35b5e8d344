"""Each partition that a pipeline reads: how far it has come in it, and what the log holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.core.time.times import moment
from tidemill.log.interface import HoldsBack

if TYPE_CHECKING:
    from tidemill.core.bind.flow import Input
    from tidemill.core.log.offsets import OffsetRange
    from tidemill.core.plan.position import Gone, TopicPosition
    from tidemill.log.interface import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """One partition: the offsets that the log holds, and the next offset to read.

    `committed` is None if the partition was never read. `max_event_time` is in microseconds. `waiting` counts offsets
    after the end that wait for an open transaction. `told` is the watermark that its records told, in microseconds, if
    they tell it: `tells`. A partition is `missing` if it was read but is not in the log; a
    person may have declared it `gone`.
    """

    topic: str
    held: OffsetRange
    committed: int | None
    max_event_time: int | None
    tells: bool = False
    told: int | None = None
    waiting: int = 0
    missing: bool = False
    gone: Gone | None = None

    @property
    def lag(self) -> int:
        """How many records of the log are not committed."""
        start = self.held.from_offset if self.committed is None else self.committed
        return max(self.held.until_offset - start, 0)

    @property
    def lost(self) -> int:
        """How many records retention deleted before they were read."""
        return 0 if self.committed is None else max(self.held.from_offset - self.committed, 0)

    @property
    def cut(self) -> int:
        """How many offsets the log ends before the committed one: it has lost records that were read."""
        return 0 if self.committed is None or self.missing else max(self.committed - self.held.until_offset, 0)


def of_topic(log: Log, source: Input, position: TopicPosition | None) -> list[PartitionStatus]:
    """The partitions of a topic that the log has."""
    topic = source.topic
    found = []
    waiting = log.waiting(topic) if isinstance(log, HoldsBack) else {}
    for number, held in sorted(log.bounds(topic).items()):
        clock = position.clocks.get(number) if position else None
        found.append(
            PartitionStatus(
                topic=topic,
                held=held,
                committed=position.offsets.get(number) if position else None,
                max_event_time=clock.max_event_time if clock else None,
                tells=source.told,
                told=clock.mark if clock else None,
                waiting=waiting.get(number, 0),
            )
        )
    return found


def missing_of(
    source: Input, position: TopicPosition, held: Mapping[int, OffsetRange], gone: Sequence[Gone]
) -> list[PartitionStatus]:
    """The partitions that were read but are not in the log."""
    from tidemill.core.log.offsets import OffsetRange, TopicPartition

    declared = {each.place: each for each in gone}
    places = {
        TopicPartition(source.topic, p): offset for p, offset in sorted(position.offsets.items()) if p not in held
    }
    return [
        PartitionStatus(
            topic=source.topic,
            held=OffsetRange(place, offset, offset),
            committed=offset,
            max_event_time=position.clocks[place.partition].max_event_time,
            tells=source.told,
            told=position.clocks[place.partition].mark,
            missing=True,
            gone=declared.get(place),
        )
        for place, offset in places.items()
    ]


def partition_json(found: PartitionStatus) -> dict[str, object]:
    """A partition as JSON values."""
    return {
        "topic": found.topic,
        "partition": found.held.topic_partition.partition,
        "committed": found.committed,
        "from_offset": found.held.from_offset,
        "until_offset": found.held.until_offset,
        "lag": found.lag,
        "lost": found.lost,
        "cut": found.cut,
        "waiting": found.waiting,
        "missing": found.missing,
        "gone": None if found.gone is None else {"by": found.gone.by, "why": found.gone.why},
        "max_event_time": _time(found.max_event_time),
        "told_watermark": _time(found.told),
    }


def _time(found: int | None) -> str | None:
    return None if found is None else moment(found).isoformat()
