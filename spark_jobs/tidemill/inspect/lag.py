"""How far a pipeline is behind its log. Only ledger and log are read: no declaration, no table, no Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from tidemill.core.bind.flow import Flow
    from tidemill.core.log.offsets import TopicPartition
    from tidemill.core.plan.position import Position
    from tidemill.core.protocol.view import OpenBatch, View
    from tidemill.ledger.ledger import Ledger
    from tidemill.log.interface import Log
    from tidemill.project.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The topics that a pipeline reads: some by name, others by patterns, regular expressions for whole names."""

    topics: tuple[str, ...]
    patterns: tuple[str, ...] = ()

    @staticmethod
    def of(flow: Flow) -> Sources:
        """What a pipeline declares."""
        patterns = {p.name for p in flow.patterns}
        topics = tuple(i.topic for i in flow.inputs if i.name not in patterns)
        return Sources(topics=topics, patterns=tuple(p.topic for p in flow.patterns))

    def present(self, log: Log) -> tuple[str, ...]:
        """The topics with these names, and those that match now. The log is asked only if there is a pattern."""
        found = log.names() if self.patterns else ()
        matching = (name for name in found if any(re.fullmatch(pattern, name) for pattern in self.patterns))
        return tuple(dict.fromkeys((*self.topics, *matching)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a pipeline is behind at one moment, after the commit of `batch_id`, which is 0 before the first.

    `records` are not committed, also those that the log has lost. `next_offsets` has the first of them in each
    partition that has some.
    """

    records: int
    next_offsets: Mapping[TopicPartition, int]
    batch_id: int
    open_batch: OpenBatch | None = None

    @property
    def waits_for_person(self) -> bool:
        """Whether an audit blocks the open batch, and nobody has decided about it yet."""
        return self.open_batch is not None and self.open_batch.is_blocked and self.open_batch.decided is None


class LagReader:
    """Says again and again how far a pipeline is behind. It reads only what the ledger has got since.

    One thread at a time may use it.
    """

    def __init__(self, project: Project, pipeline: str, sources: Sources) -> None:
        self._project, self._pipeline, self._sources = project, pipeline, sources
        self._ledger: Ledger | None = None
        self._generation = 0

    def read(self) -> Lag:
        """How far the pipeline is behind now, on the generation that is published now.

        Raises:
            LogError: a topic does not exist, or the log does not answer.
            LedgerDamaged: the ledger cannot be read.
        """
        view, log = self._view(), self._project.log()
        found = {place: (first, until) for place, first, until in _unread(log, self._sources, view.position)}
        return Lag(
            records=sum(until - first for first, until in found.values()),
            next_offsets={place: first for place, (first, _) in found.items()},
            batch_id=view.position.batch_id,
            open_batch=view.open_batch,
        )

    def is_older(self, lag: Lag, moment: datetime) -> bool:
        """Whether the log took one of the records that are not committed before `moment`, by the log's own times.

        Raises:
            LogError: the log does not answer.
        """
        log = self._project.log()
        return any(
            log.offset_at(place.topic, place.partition, moment) > offset for place, offset in lag.next_offsets.items()
        )

    def _view(self) -> View:
        number = self._project.generations.current(self._pipeline)
        if self._ledger is None or number != self._generation:
            self._ledger = self._project.of_generation(self._pipeline, number).ledger(self._pipeline)
            self._generation = number
        return self._ledger.view()


def _unread(log: Log, sources: Sources, position: Position) -> Iterator[tuple[TopicPartition, int, int]]:
    """Each partition with records that are not committed, the first of them, and where the partition ends."""
    for topic in sources.present(log):
        known = position.topics.get(topic)
        for number, held in log.bounds(topic).items():
            committed = None if known is None else known.offsets.get(number)
            first = held.from_offset if committed is None else committed
            if first < held.until_offset:
                yield held.topic_partition, first, held.until_offset
