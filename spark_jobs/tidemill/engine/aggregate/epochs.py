"""When the records of a table were read: the batches, and the moments before and after each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.history.lineage import Turn
from tidemill.core.history.reading_order import reading_order
from tidemill.core.ordered.records import Moment
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import END
from tidemill.engine.storage.chains import Numbers


class Epoch(NamedTuple):
    """One batch in the history of a table: its number, and the moments before and after it.

    Where the clock after it is BEGINNING, no time passes in it.
    """

    batch_id: int
    before: Moment
    after: Moment


class Topics(NamedTuple):
    """Topics in the order of their names, and the number of the one of each row; -1 where a row has none."""

    names: list[str]
    of_rows: Numbers

    @staticmethod
    def of(column: pa.ChunkedArray) -> Topics:
        """The topics of a column of texts."""
        found = pc.dictionary_encode(column).unify_dictionaries().combine_chunks()
        seen = found.dictionary.to_pylist()
        names = sorted(seen)
        ranks = np.array([*(names.index(name) for name in seen), -1])
        return Topics(names, ranks[np.asarray(pc.fill_null(found.indices, -1))])

    def number(self, topic: str) -> int:
        """The number of a topic; one that no row has if it is not there."""
        return self.names.index(topic) if topic in self.names else len(self.names)


@dataclass(frozen=True, kw_only=True)
class History:
    """The batches whose records are folded, in order. `ranges` says for each topic and partition where they read.

    `ranges` has the first offset and the number of the epoch for each stretch, in order of offsets; it is empty where
    there is only one epoch.
    """

    epochs: tuple[Epoch, ...]
    ranges: Mapping[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)

    @staticmethod
    def of(turns: Iterable[Turn], table: str) -> History:
        """The history of a table: those of these batches that feed it."""
        own = [turn for turn in turns if turn.feeds(table)]
        order = reading_order(turn.reads for turn in own)
        ranges = {(place.topic, place.partition): stretches for place, stretches in order.items()}
        return History(epochs=tuple(_epoch(turn, table) for turn in own), ranges=ranges)

    def of_rows(self, topics: Topics, partitions: Numbers, offsets: Numbers) -> Numbers:
        """The number of the epoch that read each record; -1 where there is no topic."""
        if not self.ranges:
            return np.where(topics.of_rows < 0, -1, 0)
        found = np.full(len(offsets), -1, np.int64)
        for (topic, partition), (firsts, numbers) in self.ranges.items():
            mine = np.flatnonzero((topics.of_rows == topics.number(topic)) & (partitions == partition))
            found[mine] = np.asarray(numbers)[np.searchsorted(firsts, offsets[mine], side="right") - 1]
        return found

    def watermarks_of(self, topic: str, partitions: Numbers, offsets: Numbers) -> Numbers:
        """The watermark before the epoch that read each record of a topic; END where none did."""
        before = np.array([*(epoch.before.watermark for epoch in self.epochs), END])
        here = Topics([topic], np.zeros(len(offsets), np.int64))
        return before[self.of_rows(here, partitions, offsets)]


def _epoch(turn: Turn, table: str) -> Epoch:
    clock, (before, after) = micros(turn.clock), turn.watermarks_of(table)
    # Repairs let no time pass.
    return Epoch(turn.batch_id, Moment(before, clock), Moment(after, clock) if turn.live else Moment(before))
