"""What a log lost: offsets that should be read next, and partitions that were read and are missing now.

Offsets and clocks of a missing partition stay in the position: if the partition comes back, reading continues there.
Until then the partition does not hold the watermark back. It may have had unread records, so a plan goes on without it
only when somebody said so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tidemill.core.bind.flow import Flow
from tidemill.core.declare.guarantees import OnLoss
from tidemill.core.declare.operators import StartFrom
from tidemill.core.errors import LogError, OffsetsLost, UnknownTopic
from tidemill.core.log.no_copy import without_copy
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.position import Gone, Position, TopicPosition

Shown = Mapping[str, Mapping[int, OffsetRange]]
"""The offsets that a log holds, by topic and partition, without topics that do not exist."""


def missing_of(flow: Flow, position: Position, shown: Shown, gone: Collection[Gone] = ()) -> tuple[TopicPartition, ...]:
    """The partitions that were read and are missing now, for inputs that are still declared.

    All of a topic that a pattern matched may disappear, as long as the pattern still matches another topic.

    Raises:
        OffsetsLost: a partition is missing, and nobody said that it is gone.
        UnknownTopic: a named topic, or every topic of a pattern, is missing.
    """
    read = {i.topic: at for i in flow.inputs if (at := position.topics.get(i.topic)) is not None}
    found = {t: lacking for t, at in sorted(read.items()) if (lacking := _lacking(t, at, shown.get(t, {})))}
    declared = {each.place for each in gone}
    if flow.spec.on_loss is not OnLoss.SKIP:
        optional = _optional(flow, shown)
        for topic, places in found.items():
            if topic not in optional and (refused := [tp for tp in places if tp not in declared]):
                raise _refused(flow, read[topic], refused, whole=not shown.get(topic))
    return tuple(tp for places in found.values() for tp in places)


def skipped_of(position: Position, shown: Shown) -> tuple[OffsetRange, ...]:
    """The offsets that should be read next but that the log lost."""
    return tuple(
        OffsetRange(held.topic_partition, offset, held.from_offset)
        for topic, before in position.topics.items()
        for partition, offset in before.offsets.items()
        if (held := shown.get(topic, {}).get(partition)) is not None and offset < held.from_offset
    )


def rest_of(flow: Flow, start: StartFrom, before: TopicPosition | None, available: OffsetRange) -> OffsetRange:
    """The offsets of a partition to read next, up to its end; offsets that may be skipped are left out.

    Raises:
        OffsetsLost: the log no longer holds the next offset to read, or it ends before that offset.
    """
    tp, held_from, end = available.topic_partition, available.from_offset, available.until_offset
    committed = before.offsets.get(tp.partition) if before else None
    if committed is None:
        latest = before is None and start is StartFrom.LATEST
        return OffsetRange(tp, end if latest else held_from, end)
    pipeline = flow.name
    if committed < held_from and flow.spec.on_loss is OnLoss.SKIP:
        return available
    if committed < held_from:
        raise OffsetsLost(
            f"{pipeline}: {tp}: offsets {committed} to {held_from - 1} are gone: retention passed the committed "
            f"offset {committed}, the log now starts at {held_from}; nothing was moved",
            fix='put the missing segments back; if there is no copy, declare Pipeline(..., on_loss="skip"): the '
            "pipeline goes on without them, and `tidemill history` says so",
        )
    if committed > end:
        raise OffsetsLost(
            f"{pipeline}: {tp}: the log ends at {end}, before the committed offset {committed}: records that were "
            "read are not there any more; nothing was moved",
            fix=f"put the log back as it was, because it must never lose its end; {without_copy(pipeline)}",
        )
    return OffsetRange(tp, committed, end)


def _lacking(topic: str, at: TopicPosition, shown: Mapping[int, OffsetRange]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, p) for p in sorted(at.offsets) if p not in shown)


def _optional(flow: Flow, shown: Shown) -> set[str]:
    """The missing topics of patterns that still match another topic."""
    optional: set[str] = set()
    for pattern in flow.patterns:
        topics = [i.topic for i in flow.inputs if i.name == pattern.name]
        absent = {topic for topic in topics if not shown.get(topic)}
        optional |= absent if len(absent) < len(topics) else set()
    return optional


def _refused(flow: Flow, at: TopicPosition, places: list[TopicPartition], *, whole: bool) -> LogError:
    known = ", ".join(f"{tp} (committed offset {at.offsets[tp.partition]})" for tp in places)
    names = " ".join(map(str, places))
    return (UnknownTopic if whole else OffsetsLost)(
        f"{flow.name}: the log does not show what was read before: {known}; records there may be lost; "
        "nothing was moved",
        fix="bring it back as it was; if it is gone for good, say so, and batches go on without it: "
        f"`tidemill gone {flow.name} {names} --why ...`",
    )
