"""What a pipeline finds in a log: topics that its patterns match, and whether it takes the rows that are sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from tidemill.core.bind.flow import Flow
from tidemill.core.errors import ConfigError, UnknownTopic
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.planning import TopicBounds
from tidemill.core.plan.position import Position
from tidemill.log.interface import HoldsBack, Log, Sends


def readable(flow: Flow, log: Log, position: Position | None = None) -> Flow:
    """The flow with what its patterns match now, and what they matched before: a topic that is gone is not forgotten.

    `position` is where the pipeline stands. The log is asked only where there is a pattern.

    Raises:
        DeclarationError: a topic would be read twice.
        LogError: the log does not answer.
    """
    if not flow.patterns:
        return flow
    known = position.topics if position is not None else {}
    return flow.reading([*log.names(), *known], known=known)


def to_be_read(flow: Flow, log: Log, position: Position) -> Flow:
    """The same for a plan: every pattern has found something, though it may be gone by now.

    Raises:
        UnknownTopic: a pattern matches nothing.
        DeclarationError, LogError: see `readable`.
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


def bounds_of(log: Log, name: str) -> TopicBounds:
    """What a plan must know of a topic.

    Raises:
        LogError: the topic is not there, or the log does not answer.
    """
    topic = log.topic(name)
    # First, so that a transaction which ends meanwhile is not taken for silence.
    waiting = log.waiting(name) if isinstance(log, HoldsBack) else {}
    return TopicBounds(topic_id=topic.topic_id, partitions=log.bounds(name), waiting=frozenset(waiting))


def held_of(log: Log, topics: Iterable[str]) -> dict[str, Mapping[int, OffsetRange]]:
    """What the log holds of each topic: nothing of one that is not there, or of a partition that is missing.

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
    """A pipeline sends rows only to a log that takes those of a batch all at once, and to topics that are there.

    Raises:
        ConfigError: it would send to another log.
        LogError: a topic is not there, or the log does not answer.
    """
    topics = [sink.topic for sink in flow.sinks if sink.topic is not None]
    if topics and not isinstance(log, Sends):
        raise ConfigError(
            f"{flow.name} sends rows to {', '.join(topics)}, and the project's log is not Kafka",
            fix='set [log] kafka = "HOST:PORT", or publish without topic=',
        )
    for topic in topics:
        log.topic(topic)
