"""What a pipeline needs from a log: the topics that its patterns match, and a log that accepts the rows it sends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress

from tidemill.core.bind.flow import Flow
from tidemill.core.errors import ConfigError, UnknownTopic
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.planning import TopicBounds
from tidemill.core.plan.position import Position, TopicPosition
from tidemill.log.interface import Continues, HoldsBack, Log, Sends


def readable(flow: Flow, log: Log, position: Position | None = None) -> Flow:
    """Replace the patterns of a flow by the topics that match now or are known from `position`.

    So a topic that was read and then deleted is not forgotten. The log is asked only if there is a pattern.

    Raises:
        DeclarationError: a topic would be read twice.
        LogError: the log does not answer.
    """
    if not flow.patterns:
        return flow
    known = position.topics if position is not None else {}
    return flow.reading([*log.names(), *known], known=known)


def to_be_read(flow: Flow, log: Log, position: Position) -> Flow:
    """Replace the patterns as `readable` does, and require that each one matches a topic, present or past.

    Raises:
        UnknownTopic: a pattern matches nothing.
        DeclarationError: a topic would be read twice.
        LogError: the log does not answer.
    """
    if not flow.patterns:
        return flow
    names, known = log.names(), position.topics
    found = flow.reading([*names, *known], known=known)
    for pattern in flow.patterns:
        if not any(i.name == pattern.name for i in found.inputs):
            raise UnknownTopic(
                f"{flow.name}: no topic matches {pattern.topic!r}; topics there: {', '.join(names) or 'none'}",
                fix="create one, or correct the pattern: it is a regular expression for a whole name",
            )
    return found


def bounds_for(flow: Flow, log: Log, position: Position) -> dict[str, TopicBounds]:
    """Return what the plan of the next batch must know about each topic that a pipeline with this position reads.

    Topics that were read before and are missing now are left out: the plan decides whether they may be.

    Raises:
        LogError: a topic that was never read does not exist, or the log does not answer.
    """
    found: dict[str, TopicBounds] = {}
    for topic in (source.topic for source in flow.inputs):
        before = position.topics.get(topic)
        with nullcontext() if before is None else suppress(UnknownTopic):
            found[topic] = bounds_of(log, topic, before)
    return found


def bounds_of(log: Log, name: str, before: TopicPosition | None = None) -> TopicBounds:
    """Return what a plan must know about a topic: its id, the bounds of its partitions, and which ones wait.

    What the log holds before the next offsets of a reader with the position `before` may be left out.

    Raises:
        LogError: the topic does not exist, or the log does not answer.
    """
    topic = log.topic(name)
    # Ask this first: otherwise a transaction that ends in between would look like an idle partition.
    waiting = log.waiting(name) if isinstance(log, HoldsBack) else {}
    if before is not None and isinstance(log, Continues):
        held = log.bounds_since(name, before.offsets)
    else:
        held = log.bounds(name)
    return TopicBounds(topic_id=topic.topic_id, partitions=held, waiting=frozenset(waiting))


def held_of(log: Log, topics: Iterable[str]) -> dict[str, Mapping[int, OffsetRange]]:
    """Return the ranges that the log holds of each topic; empty for a topic that does not exist.

    Raises:
        LogError: the log does not answer.
    """
    found: dict[str, Mapping[int, OffsetRange]] = {}
    for topic in topics:
        found[topic] = {}
        with suppress(UnknownTopic):
            found[topic] = log.bounds(topic)
    return found


def check_sends(flow: Flow, log: Log) -> None:
    """Check that the log can send the rows of a batch all at once, and that the topics exist.

    Raises:
        ConfigError: the pipeline sends rows, but the log cannot.
        LogError: a topic does not exist, or the log does not answer.
    """
    topics = [sink.topic for sink in flow.sinks if sink.topic is not None]
    if topics and not isinstance(log, Sends):
        raise ConfigError(
            f"{flow.name} sends rows to {', '.join(topics)}, and the project's log is not Kafka",
            fix='set [log] kafka = "HOST:PORT", or publish without topic=',
        )
    for topic in topics:
        log.topic(topic)
