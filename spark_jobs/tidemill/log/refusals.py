"""Checks that every log makes, with the same error texts."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence, Sized
from dataclasses import replace

from tidemill.core.errors import (
    LogInputError,
    OffsetsLost,
    SegmentDamaged,
    TooManyPartitions,
    TopicRecreated,
    UnknownTopic,
)
from tidemill.core.log.no_copy import without_copy
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.log.interface import Topic
from tidemill.log.writable import LandedBatch, LandedWhole, ProducerBatch

MAX_SEGMENT_RECORDS = 1_000_000
"""An append of more records to one partition is refused: a segment is read, and retried, as a whole."""

USUAL_PARTITIONS = 1_024
"""A new topic with more partitions needs force. Each batch asks each partition for its bounds and names it in its plan.

With 1,024 partitions of a file log this takes 0.3 s of every batch, measured on a local disk.
"""

MOST_PARTITIONS = 10_000
"""A topic with more partitions is neither created nor read: a batch would spend seconds to minutes on asking them."""

_NAMED = 3

_TOPIC_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}\Z")


def is_topic_name(name: str) -> bool:
    """Whether Kafka, too, would accept this name for a topic."""
    return _TOPIC_NAME.match(name) is not None


def check_new_topic(name: str, partitions: int, *, force: bool = False) -> None:
    """Refuse a topic that cannot be created, or that would make each of its batches slow."""
    if not is_topic_name(name) or name.startswith("."):
        raise LogInputError(
            f"{name!r} cannot be the name of a topic",
            fix="use 1 to 249 of the characters A-Z a-z 0-9 . _ - and begin with another than a dot",
        )
    if partitions < 1:
        raise LogInputError(f"topic {name} with {partitions} partitions", fix="give at least 1 partition")
    if partitions > (MOST_PARTITIONS if force else USUAL_PARTITIONS):
        more = "" if force else f"; --force allows up to {MOST_PARTITIONS:,}"
        raise LogInputError(
            f"topic {name} with {partitions:,} partitions: every batch asks each of them for its offsets, so that more "
            f"than {USUAL_PARTITIONS:,} make batches slow, and more than {MOST_PARTITIONS:,} cannot be read",
            fix=f"give at most {USUAL_PARTITIONS:,} (a few for each core of Spark are enough){more}",
        )


def check_readable(topic: Topic) -> None:
    """Refuse a topic with so many partitions that a batch would spend minutes on asking them."""
    if topic.partitions > MOST_PARTITIONS:
        raise TooManyPartitions(
            f"topic {topic.name} has {topic.partitions:,} partitions: every batch asks each of them for its offsets, "
            f"and at most {MOST_PARTITIONS:,} can be read",
            fix=f"make another topic with fewer, and remove this one: tidemill log delete {topic.name}",
        )


def topic_exists(topic: Topic, where: str) -> LogInputError:
    """The error for creating a topic that already exists."""
    return LogInputError(
        f"topic {topic.name} is already in {where}, with {topic.partitions} partitions (id {topic.topic_id})",
        fix="append to it, or choose another name",
    )


def unknown_topic(name: str, where: str, existing: Sequence[str]) -> UnknownTopic:
    """The error for a topic that does not exist; it lists the topics that do."""
    found = f"topics there: {', '.join(existing)}" if existing else "there are no topics there"
    close = difflib.get_close_matches(name, existing, n=1)
    meant = f"did you mean `{close[0]}`? Otherwise " if close else ""
    return UnknownTopic(
        f"no topic {name!r} in {where}; {found}",
        fix=f"{meant}check the name and the place, or create it: tidemill log create {name}",
    )


def check_identity(topic: Topic, topic_id: str) -> None:
    """Refuse a topic that was deleted and created again since `topic_id` was read."""
    if topic.topic_id != topic_id:
        raise TopicRecreated(
            f"topic {topic.name} was created again: expected id {topic_id}, found {topic.topic_id}; "
            "its offsets mean other records now",
            fix=f"put the old topic back; {without_copy()}",
        )


def check_partition(topic: Topic, partition: int) -> TopicPartition:
    """Return the topic-partition; raise an error if the topic has no such partition."""
    if not 0 <= partition < topic.partitions:
        raise LogInputError(f"topic {topic.name} has no partition {partition}; it has 0 to {topic.partitions - 1}")
    return TopicPartition(topic.name, partition)


def check_scan(topic: Topic, topic_id: str, ranges: Sequence[OffsetRange]) -> None:
    """Refuse ranges of other topics, and a topic that is not the one identified by `topic_id`."""
    check_identity(topic, topic_id)
    for item in ranges:
        if item.topic_partition.topic != topic.name:
            raise LogInputError(f"a scan is of one topic: {topic.name}, but {item} is asked for")
        if item and item.topic_partition.partition >= topic.partitions:
            raise OffsetsLost(
                f"{item} cannot be read: topic {topic.name} now has {topic.partitions} partition(s), counted from 0",
                fix="check that this is the log that was read before, or bring the partition back as it was; "
                f"{without_copy()}",
            )


def check_held(wanted: OffsetRange, held: OffsetRange) -> None:
    """Refuse a range that is not wholly between the start and the end of its partition."""
    if wanted.from_offset < held.from_offset:
        until = min(wanted.until_offset, held.from_offset)
        raise OffsetsLost(
            f"{_place(wanted)}: {_span(wanted.from_offset, until)} gone: "
            f"expected to read from {wanted.from_offset}, the log starts at {held.from_offset}",
            fix=f"put the log back as it was, from a copy; {without_copy()}",
        )
    if wanted.until_offset > held.until_offset:
        missing = _span(max(wanted.from_offset, held.until_offset), wanted.until_offset)
        raise OffsetsLost(
            f"{_place(wanted)}: {missing} not there: "
            f"expected to read up to {wanted.until_offset}, the log ends at {held.until_offset}",
            fix="check that this is the log the plan was made on: an older copy of it ends earlier; put it back as it "
            f"was; {without_copy()}",
        )


def hole(topic_partition: TopicPartition, from_offset: int, until_offset: int) -> OffsetsLost:
    """The error for offsets that are missing between others."""
    topic, partition = topic_partition.topic, topic_partition.partition
    return OffsetsLost(
        f"topic {topic} partition {partition}: {_span(from_offset, until_offset)} missing: "
        f"expected a segment at {from_offset}, found the next at {until_offset}",
        fix="bring the missing segment files back; without them, all records before the hole have to go, too "
        f"(tidemill log trim {topic} --partition {partition} --before {until_offset}); then {without_copy()}",
    )


def in_no_file(absent: Sequence[OffsetRange]) -> OffsetsLost:
    """The error for offsets that no file of a landing zone holds, although they lie before the end of the log."""
    named = [f"{r.topic_partition} {_numbers(r.from_offset, r.until_offset)}" for r in absent]
    more = f" and {len(named) - _NAMED:,} more stretches" if len(named) > _NAMED else ""
    return OffsetsLost(
        f"no file holds {', '.join(named[:_NAMED])}{more}",
        fix="bring the files back, or wait for them if they are late. If Kafka has no records there (transactions, "
        "compaction), or if they are lost for good, set [log] gaps = true: batches then go on without them, and never "
        "read a file that comes after all",
    )


def two_files(place: TopicPartition, offset: int, names: Sequence[str]) -> SegmentDamaged:
    """The error for files of a landing zone that begin at the same offset: nobody knows which one counts."""
    return SegmentDamaged(
        f"{place}: {' and '.join(names)} both begin at offset {offset}", fix="leave the right one, and remove the other"
    )


def check_size(topic_partition: TopicPartition, count: int) -> None:
    """Refuse more records than a segment may hold."""
    if count > MAX_SEGMENT_RECORDS:
        raise LogInputError(
            f"{topic_partition}: one append of {count} records, at most {MAX_SEGMENT_RECORDS} fit",
            fix="append in batches",
        )


def check_position(held: OffsetRange, at: int | None) -> None:
    """Refuse to write anywhere but at the end of the partition. `at` None means wherever the end is."""
    end = held.until_offset
    if at is None or at == end:
        return
    why = "is already written and cannot change" if at < end else "would leave a hole"
    raise LogInputError(
        f"{_place(held)}: an append at offset {at} {why}: the next offset is {end}",
        fix=f"append at {end}, or do not say where",
    )


def check_start(held: OffsetRange, from_offset: int) -> None:
    """Refuse to begin to read outside the offsets that the partition holds."""
    if held.from_offset <= from_offset <= held.until_offset:
        return
    fix = f"give an offset from {held.from_offset} to {held.until_offset}"
    if from_offset > held.until_offset:
        what = f"offset {from_offset} is not there yet: the log ends at {held.until_offset}"
        raise LogInputError(f"{_place(held)}: {what}", fix=fix)
    raise OffsetsLost(f"{_place(held)}: offset {from_offset} is gone: the log starts at {held.from_offset}", fix=fix)


def check_trim(held: OffsetRange, before_offset: int) -> None:
    """Refuse to trim beyond the end of the partition."""
    if not 0 <= before_offset <= held.until_offset:
        raise LogInputError(
            f"{_place(held)}: cannot trim before offset {before_offset}: the log ends at {held.until_offset}",
            fix=f"give an offset from {held.from_offset} to {held.until_offset}",
        )


def is_same(landed: ProducerBatch, batch: ProducerBatch) -> bool:
    """Whether `landed` and `batch` are the same batch. Digests are compared if both have one."""
    if landed.digest is None or batch.digest is None:
        landed, batch = replace(landed, digest=None), replace(batch, digest=None)
    return landed == batch


class OtherBatch(LogInputError):
    """Another batch has this sequence number: one with other records, or with the records split differently."""


def same_batch(
    topic: Topic, landed: LandedWhole, batch: ProducerBatch, shares: Sequence[tuple[int, Sized]] | None = None
) -> None:
    """Refuse to complete a batch with other records or other shares. Runs before anything is written.

    `shares` are given where the log writes a batch partition by partition.
    """
    counts = None if shares is None else {number: len(share) for number, share in shares}
    fits = counts is None or all(counts.get(r.topic_partition.partition) == len(r) for r in landed.ranges)
    if is_same(landed.batch, batch) and fits:
        return
    there = f" ({', '.join(map(str, landed.ranges))})" if landed.ranges else ""
    raise OtherBatch(
        f"topic {topic.name}: sequence {batch.sequence} of producer {batch.producer_id} landed with "
        f"{landed.batch.records} records{there}; the retry has {batch.records}; the records or their partitions differ",
        fix="retry with the same records, options and partitioning; or append them as another input: with --again, or "
        "under a producer id that was never used",
    )


def repeated(landed: LandedBatch, batch: ProducerBatch, count: int) -> OffsetRange:
    """Return the range of a share that landed before; raise an error if the retry is a different share."""
    if is_same(landed.batch, batch) and len(landed.range) == count:
        return landed.range
    raise LogInputError(
        f"{landed.range.topic_partition}: sequence {batch.sequence} of producer {batch.producer_id} landed with "
        f"{len(landed.range)} of {landed.batch.records} records; "
        f"the retry has {count} of {batch.records}; the records or their partitions differ",
        fix="retry with the same records and partitioning, or give new records a new sequence number",
    )


def outdated(topic_partition: TopicPartition, batch: ProducerBatch, newest: int) -> LogInputError:
    """The error for a batch that is missing although its producer has written newer ones."""
    return LogInputError(
        f"{topic_partition}: sequence {batch.sequence} of producer {batch.producer_id} is not there, "
        f"and the producer has gone on to sequence {newest}",
        fix="let one process at a time use a producer id, with growing sequence numbers",
    )


def _place(item: OffsetRange) -> str:
    return f"topic {item.topic_partition.topic} partition {item.topic_partition.partition}"


def _span(from_offset: int, until_offset: int) -> str:
    verb = "is" if until_offset - 1 <= from_offset else "are"
    return f"{_numbers(from_offset, until_offset)} {verb}"


def _numbers(from_offset: int, until_offset: int) -> str:
    last = until_offset - 1
    return f"offset {from_offset}" if last <= from_offset else f"offsets {from_offset} to {last}"
