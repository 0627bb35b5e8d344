"""What is checked when a pipeline is declared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import timedelta

from tidemill.core.declare import operators as op
from tidemill.core.declare.graph import Graph
from tidemill.core.declare.names import checked_name
from tidemill.core.errors import DeclarationError
from tidemill.core.given import check_text
from tidemill.core.time.times import positive_duration, show_duration

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def check_published(pipeline: str, graph: Graph) -> None:
    """Check that a pipeline publishes at least one table, and no table twice.

    Raises:
        DeclarationError: it publishes no table, or one twice; or a topic that it sends rows to has an invalid name,
            gets rows of two tables, or is read by the pipeline.
    """
    publishes = [o for o in graph.operators.values() if isinstance(o, op.Publish)]
    tables = [p.table for p in publishes]
    if not tables:
        raise DeclarationError(f"pipeline `{pipeline}` publishes nothing", fix="end a stream with .publish(...)")
    if len(set(tables)) < len(tables):
        twice = next(t for t in tables if tables.count(t) > 1)
        raise DeclarationError(f"table `{twice}` is published twice", fix="use union, or another table")
    _check_sent(graph, publishes)
    _check_used(graph)


def _check_used(graph: Graph) -> None:
    """Check that the read with the shortest delay leads to a table, and that no two others have the same delay."""
    behind = {name: o for name, o in graph.operators.items() if isinstance(o, op.Behind)}
    for name in (name for name, o in graph.operators.items() if isinstance(o, op.Read)):
        targets = [edge.target for edge in graph.edges if edge.source == name]
        if all(target in behind for target in targets):
            fix = f"leave it out: the delay of {graph.where(targets[0])} is enough"
            raise DeclarationError(f"{graph.where(name)} leads nowhere, but for the reads with a longer delay", fix=fix)
        again = [target for target in targets if target in behind]
        for number, target in enumerate(again):
            if any(behind[target] == behind[other] for other in again[:number]):
                raise DeclarationError(
                    f"{graph.where(target)} has the delay of an earlier read of its topic", fix="use that stream twice"
                )


def _check_sent(graph: Graph, publishes: Sequence[op.Publish]) -> None:
    """Check that each topic gets the rows of one table only, and that the pipeline does not read a topic it writes."""
    sent = [p.topic for p in publishes if p.topic is not None]
    for topic in sent:
        _check_topic(topic)
    if len(set(sent)) < len(sent):
        twice = next(t for t in sent if sent.count(t) > 1)
        raise DeclarationError(f"two tables are sent to topic `{twice}`", fix="name another topic for one of them")
    reads = [o for o in graph.operators.values() if isinstance(o, op.Read)]
    for topic in sent:
        if any(read.takes(topic) for read in reads):
            raise DeclarationError(
                f"topic `{topic}` is read, and rows are sent to it", fix="send them to another topic"
            )


def _check_topic(name: str) -> None:
    if not isinstance(name, str) or not _TOPIC.fullmatch(name):
        raise DeclarationError(
            f"{name!r} cannot be the name of a topic", fix="use 1 to 249 of the characters A-Z a-z 0-9 . _ -"
        )


def wanted_topics(names: tuple[str, ...], pattern: str | None) -> str | op.Topics:
    """The topics of a read that has these names, or this pattern.

    Raises:
        DeclarationError: there are neither names nor a pattern, or both; or the pattern is not a regular expression.
    """
    if bool(names) == (pattern is not None):
        raise DeclarationError(
            "read takes the names of topics, or a pattern", fix='read("a", "b") or read(pattern="a.*")'
        )
    if pattern is None:
        return names[0] if len(names) == 1 else op.Topics(names=names)
    check_text(pattern, "the pattern of read", 'pattern="shop-.*"', empty=True)
    if not pattern:
        raise DeclarationError("an empty pattern matches no topic", fix='write pattern="shop-.*" for example')
    try:
        re.compile(pattern)
    except re.error as error:
        raise DeclarationError(f"{pattern!r} is no regular expression: {error}") from None
    return op.Topics(pattern=pattern)


def check_watermark(read: op.Read) -> None:
    """Check that the watermark of a read follows its delay, its records or another pipeline: one of them.

    Raises:
        DeclarationError: there are two; the watermark is no text; or no pipeline can have the name.
    """
    if read.watermark_of is not None:
        checked_name(read.watermark_of, "a pipeline")
        other = "a delay" if read.delay else "a watermark" if read.watermark is not None else None
        if other is not None:
            raise DeclarationError(
                f"{read.topic} is read with {other} and with watermark_of={read.watermark_of!r}: records come after "
                "one bound",
                fix="leave one of them out",
            )
    if read.watermark is None:
        return
    example = 'watermark="ts - INTERVAL 10 SECONDS"'
    if not isinstance(read.watermark, str):
        raise DeclarationError(f"watermark is {read.watermark!r}, expected an expression", fix=f"write {example}")
    if read.delay:
        raise DeclarationError(
            f"{read.topic} is read with a delay of {show_duration(read.delay)} and with watermark={read.watermark!r}: "
            "records come after one bound",
            fix=f"leave one of them out; a watermark with a delay is {example}",
        )


def read_again(operators: Mapping[str, op.Operator], read: op.Read) -> tuple[str, op.Behind] | None:
    """The name of an earlier read of the same topics, and how much longer the delay is now; None: none was read before.

    Raises:
        DeclarationError: a topic was read before, in another way; or it is named twice.
    """
    names = read.names
    for name, earlier in operators.items():
        if isinstance(earlier, op.Read) and _same_topics(earlier, read):
            _check_again(earlier, replace(read, topic=earlier.topic))
            return name, op.Behind(read.delay - earlier.delay)
    known = [topic for o in operators.values() if isinstance(o, op.Read) for topic in o.names]
    for number, topic in enumerate(names):
        if topic in known or topic in names[:number]:
            fix = "read it once and use the stream twice; to read topics again with a longer delay, name all of them"
            raise DeclarationError(f"topic `{topic}` is read twice", fix=fix)
    return None


def _same_topics(one: op.Read, other: op.Read) -> bool:
    return (sorted(one.names), one.pattern) == (sorted(other.names), other.pattern)


def _check_again(earlier: op.Read, read: op.Read) -> None:
    """Check that the same topics are read again only with a longer delay."""
    again = f"topic `{read.topic}` is read twice" if len(read.names) == 1 else f"{read.topic} are read twice"
    if replace(read, delay=earlier.delay) != earlier:
        different = [f.name for f in fields(op.Read) if getattr(read, f.name) != getattr(earlier, f.name)]
        raise DeclarationError(
            f"{again}, with a different {' and '.join(f for f in different if f != 'delay')}",
            fix="read it once and use the stream twice; only the delay may be another one",
        )
    if read.delay <= earlier.delay:
        same, fix = read.delay == earlier.delay, "read it first with the shortest delay"
        how, fix = ("the same", "use the stream twice, or give a longer delay") if same else ("a shorter", fix)
        raise DeclarationError(f"{again}, the second time with {how} delay, {show_duration(read.delay)}", fix=fix)


SHORTEST_INTERVAL = timedelta(seconds=1)
"""The shortest time between two batches. At best, a run of Airflow ends half a second after its tick, and a warm batch
takes about half a second more: ticks that come faster only queue up (measured; ADR 12)."""


def interval(value: str | timedelta) -> timedelta:
    """The time between the starts of two batches.

    Raises:
        DeclarationError: it is shorter than a scheduler can start runs.
    """
    length = positive_duration(value, "every")
    if length < SHORTEST_INTERVAL:
        raise DeclarationError(
            f"every={value!r} is below the shortest interval, 1 second: every batch is a run of a scheduler, which "
            "takes about that long from its tick to the commit, so that faster ticks would only queue up",
            fix='declare every="1 second" or longer; answers within milliseconds need an engine that never stops',
        )
    return length
