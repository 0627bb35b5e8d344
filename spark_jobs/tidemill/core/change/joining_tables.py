"""Tables that join a pipeline late, and topics that leave it: a meaning (`tidemill.core.bind.meaning`) shows neither.

A table that earlier batches left out has no state of the records that they read. It gets only windows that start after
the newest event time of these batches; earlier windows must be computed from the log again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import PUBLISHED, Flow, Input
from tidemill.core.bind.meaning import by_pattern, inputs_of
from tidemill.core.bind.sinks import Sink, WindowedSink
from tidemill.core.history.coverage import Cover, united
from tidemill.core.history.past import Past
from tidemill.core.plan.amendments import Ranges
from tidemill.core.plan.position import Position
from tidemill.core.time.times import show_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """A table that batches left out up to batch `until`: all of them or, if it is `back`, only the last ones.

    `event_time` is the newest event time, in microseconds, that was read from the table's topics; None for a table of
    rows, and for totals without a window, which count from the next batch on. Windows that fire record by record cannot
    follow: they do not know which of them are whole.
    """

    back: bool
    until: int
    event_time: int | None
    follows: bool = True

    def lines(self) -> Iterator[str]:
        """What the table lacks, as text for people."""
        missed = "left out by earlier batches, and back" if self.back else "a new table"
        if not self.follows:
            whole = "its first windows would lack records, and it could not tell which"
        elif self.event_time is None:
            whole = "it gets the rows of later batches alone"
        else:
            whole = f"it gets windows that start after {show_moment(self.event_time)}"
        yield f"  {missed}: without what was read up to batch {self.until}, {whole}"


@dataclass(frozen=True, slots=True)
class Unread:
    """A topic whose records are in a table that does not read it any more."""

    topic: str
    follows: bool = True

    def lines(self) -> Iterator[str]:
        """Which topic left, as text for people."""
        yield f"  {self.topic}: it was read, now nothing of it is"


def newcomer(flow: Flow, sink: Sink, position: Position) -> Newcomer | None:
    """What a table lacks because the last batch did not have it; None when it lacks nothing.

    An older ledger does not know its tables: there, no table counts as left out.
    """
    if position.meanings is None or sink.table in position.meanings:
        return None
    clocks = (position.topics[topic].clocks for topic in _topics(flow, sink, position.topics))
    times = [c.max_event_time for known in clocks for c in known.values() if c.max_event_time is not None]
    if not times:
        return None
    bounded = isinstance(sink, FiringSink) and sink.bounded
    return Newcomer(
        back=PUBLISHED + sink.table in position.tables or sink.table in position.shapes,
        until=position.batch_id,
        event_time=max(times) if isinstance(sink, WindowedSink) and sink.start is not None else None,
        follows=not bounded,
    )


def completed(
    flow: Flow, position: Position, past: Past, covers: Collection[Cover], ranges: Ranges
) -> tuple[str, ...] | None:
    """The tables that reading `ranges` again completes; None when there are none.

    `covers` are the batches that read these ranges before. A table is complete when no other batch left out records
    of it, and when the log still has everything that these batches read.
    """
    lacking = [sink for sink in flow.sinks if _lacks(position, sink)]
    if not lacking:
        return None
    again, own = united([ranges]), {cover.batch_id for cover in covers}
    # Records that the log has lost cannot be read again.
    lossy = any(again.get(t, ()) != all_of for t, all_of in united(c.ranges for c in covers).items())
    others = [cover for cover in past.covers(position.slices) if cover.batch_id not in own]
    found = [sink.table for sink in lacking if not lossy and not any(_left_out(flow, sink, position, others))]
    return tuple(found) or None


def _lacks(position: Position, sink: Sink) -> bool:
    since = (position.since or {}).get(sink.table)
    return since is not None and since.event_time is not None


def _left_out(flow: Flow, sink: Sink, position: Position, covers: Collection[Cover]) -> Iterator[bool]:
    """For each of these batches: whether it read the table's topics before the table had its present meaning."""
    first, topics = position.first_of_meaning(sink.table), set(_topics(flow, sink, position.topics))
    return (c.batches[0].from_batch < first and bool(topics & c.ranges.keys()) for c in covers)


def unread(flow: Flow, sink: Sink, position: Position) -> tuple[Unread, ...]:
    """The topics that a pattern matched for a table, and that no input reads for it any more."""
    now = frozenset(_topics(flow, sink, position.topics))
    return tuple(Unread(topic) for topic in sorted(_matched(flow, sink, position)) if topic not in now)


def matched(flow: Flow, position: Position) -> Mapping[str, tuple[str, ...]] | None:
    """The topics that patterns match, by published table, as a position keeps them; None without patterns."""
    if not flow.patterns:
        return None
    patterns = {source.name for source in flow.patterns}
    return {
        sink.table: tuple(sorted(_topics(flow, sink, position.topics, only=patterns & sink.paths.keys())))
        for sink in flow.sinks
    }


def _matched(flow: Flow, sink: Sink, position: Position) -> Collection[str]:
    if position.matched is not None:
        return position.matched.get(sink.table, ())
    # An older ledger does not say which table they belong to: a topic that no meaning names and no input reads now was
    # matched by a pattern.
    known = position.meanings or {}
    if not any(by_pattern(label) for label in inputs_of(known.get(sink.table, {}))):
        return ()
    named = {label for meaning in known.values() for label in inputs_of(meaning)}
    read = _matching(flow, flow.sources, position.topics)
    return position.topics.keys() - named - set(read)


def _topics(flow: Flow, sink: Sink, topics: Collection[str], only: Collection[str] | None = None) -> Iterator[str]:
    """The topics that feed the table as it is declared now; with `only`, those of these inputs alone."""
    names = sink.paths.keys() if only is None else only
    return _matching(flow, [source for source in flow.sources if source.name in names], topics)


def _matching(flow: Flow, sources: Sequence[Input], topics: Collection[str]) -> Iterator[str]:
    return (topic for topic in topics if any(_reads(flow, source, topic) for source in sources))


def _reads(flow: Flow, source: Input, topic: str) -> bool:
    if source in flow.patterns:
        return re.fullmatch(source.topic, topic) is not None
    return source.topic == topic
