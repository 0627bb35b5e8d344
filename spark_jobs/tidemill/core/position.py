"""Where a pipeline stands after a commit: all that the next plan needs to know about the past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidemill.core.offsets import TopicPartition
from tidemill.core.slices import SliceSet
from tidemill.core.watermarks import BEGINNING, PartitionClock


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPosition:
    """The next offset to read of each partition of one topic, and what is known of its time.

    `offsets` and `clocks` have the same partitions.
    """

    topic_id: str
    offsets: Mapping[int, int]
    clocks: Mapping[int, PartitionClock]

    def __post_init__(self) -> None:
        if self.offsets.keys() != self.clocks.keys():
            raise ValueError(f"offsets of {sorted(self.offsets)} but clocks of {sorted(self.clocks)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMark:
    """How a commit left a table: its version, its identity, and the last transaction of the pipeline in it."""

    version: int
    table_id: str
    transaction: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The outcome of all commits so far. `batch_id` is the last one committed, 0 before the first.

    `shapes` says for each windowed table what its state means (`WindowedSink.shape`), `tables` how each table was left
    by the last commit that wrote it.
    """

    batch_id: int = 0
    watermark: int = BEGINNING
    topics: Mapping[str, TopicPosition] = field(default_factory=dict)
    slices: SliceSet = field(default_factory=SliceSet)
    shapes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tables: Mapping[str, TableMark] = field(default_factory=dict)

    @property
    def clocks(self) -> Mapping[TopicPartition, PartitionClock]:
        """The clocks of all partitions of all topics."""
        return {
            TopicPartition(name, partition): clock
            for name, topic in self.topics.items()
            for partition, clock in topic.clocks.items()
        }

    def after(  # noqa: PLR0913  all that a position is
        self,
        *,
        batch_id: int,
        attempt: int,
        topics: Mapping[str, TopicPosition],
        watermark: int,
        shapes: Mapping[str, Mapping[str, str]] | None = None,
        tables: Mapping[str, TableMark] | None = None,
    ) -> Position:
        """The position once `attempt` of `batch_id` is committed."""
        if watermark < self.watermark:
            raise ValueError(f"the watermark would go back from {self.watermark} to {watermark}")
        return replace(
            self,
            batch_id=batch_id,
            watermark=watermark,
            topics={**self.topics, **topics},
            slices=self.slices.add(batch_id, attempt),
            shapes={**self.shapes, **(shapes or {})},
            tables={**self.tables, **(tables or {})},
        )
