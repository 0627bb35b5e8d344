"""What a batch does: one type for each kind of batch, with the data that only this kind needs.

Code that treats kinds differently uses one `match` over `Work`, so that type checking finds a forgotten kind.
`tidemill.core.plan.stored_plan` says how plans are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.amendments import Fold, Ranges, Redefined, Repair, Rewind, Switch
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.position import Gone, TopicPosition
from tidemill.core.plan.replay import Replay
from tidemill.core.time.watermarks import PartitionClock


class Kind(StrEnum):
    """The kind of a batch, as ledgers name it."""

    LIVE = "live"
    REPAIR = "repair"
    BACKFILL = "backfill"
    REWIND = "rewind"
    SWITCH = "switch"
    FOLD = "fold"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """What a batch reads of one topic: one range for every partition that the log shows; some may be empty.

    `idle` partitions do not hold back the watermark. `marks` are the watermarks that another pipeline tells of
    partitions, once these ranges are read.
    """

    topic_id: str
    ranges: tuple[OffsetRange, ...]
    idle: tuple[int, ...] = ()
    marks: Mapping[int, int] | None = None

    @property
    def records(self) -> int:
        """The total length of all ranges."""
        return sum(len(r) for r in self.ranges)


def clocks_of(
    topics: Mapping[str, TopicPlan], after: Mapping[str, TopicPosition]
) -> Mapping[TopicPartition, PartitionClock]:
    """The clocks, in the positions after a batch, of the partitions that may hold the watermark back."""
    named = ((name, topic, r.topic_partition) for name, topic in topics.items() for r in topic.ranges)
    return {tp: after[name].clocks[tp.partition] for name, topic, tp in named if tp.partition not in topic.idle}


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Reads the next offsets, in `topics`. `drain` says that the input has ended, so every window closes.

    `skipped` are offsets that the log has lost. `missing` are partitions that were read before and that the log does
    not show. With this batch, somebody declares some of them `gone`, or that the numbers are `redefined`: from here on
    they have another meaning.
    """

    topics: Mapping[str, TopicPlan]
    drain: bool = False
    skipped: tuple[OffsetRange, ...] | None = None
    missing: tuple[TopicPartition, ...] | None = None
    gone: tuple[Gone, ...] | None = None
    redefined: Redefined | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillStep:
    """Reads the next part of a backfill. `job` is the backfill after this batch, but without this batch's slice."""

    job: Backfill
    reads: Ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Reads offsets again to compare results, and changes nothing: such a plan is never stored in a ledger."""

    reads: Ranges


Work = Live | Repair | BackfillStep | Rewind | Switch | Fold | Reading


def kind_of(work: Work) -> Kind:
    """The kind of a batch; a `Reading`, which no ledger has, counts as a backfill."""
    match work:
        case Live():
            return Kind.LIVE
        case Repair():
            return Kind.REPAIR
        case BackfillStep() | Reading():
            return Kind.BACKFILL
        case Rewind():
            return Kind.REWIND
        case Switch():
            return Kind.SWITCH
        case Fold():
            return Kind.FOLD
        case _:
            assert_never(work)


def reads_of(work: Work) -> Ranges:
    """The offsets that a batch reads, by topic; some ranges are empty."""
    match work:
        case Live(topics=topics):
            return {name: topic.ranges for name, topic in topics.items()}
        case BackfillStep(reads=reads) | Reading(reads=reads):
            return reads
        case Repair():
            return work.ranges
        case Rewind() | Switch() | Fold():
            return {}
        case _:
            assert_never(work)


def replay_of(work: Work) -> Replay | None:
    """How a batch folds tables of firings again; None if it does not."""
    match work:
        case Repair(replay=replay):
            return replay
        case BackfillStep(job=job):
            return job.replay
        case _:
            return None
