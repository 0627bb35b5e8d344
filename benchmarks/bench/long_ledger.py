"""A ledger of a million events in half a minute: the texts of real events, with the numbers of each batch in them.

Two batches that follow each other are written down by the product's own codec. Where their texts differ is what grows
from batch to batch, in equal steps; all else is the same in every batch. A third text proves that it is so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position, TopicPosition
from tidemill.core.plan.slices import SliceSet
from tidemill.core.plan.work import Live, TopicPlan
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.codec import to_json
from tidemill.core.protocol.events import FORMAT_VERSION, Audited, Committed, Event, Executor, Planned
from tidemill.core.time.spans import PaneSpan
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import PartitionClock
from tidemill.ledger.rows import NAMES, SCHEMA

_TOKEN = re.compile(r'"\d{4}-\d\d-\d\dT[^"]*"|-?\d+')
_HASH = "plan hash"
_ROWS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Batches that read `records` of each partition every `step`; `last` is a real commit, which they follow."""

    last: Committed
    plan: BatchPlan
    audited: Audited
    executor: Executor
    start: datetime
    step: timedelta
    records: int

    def events(self, batch: int) -> tuple[Planned, Audited, Committed]:
        """What a batch leaves in the ledger."""
        topic, position = "events", self._position(batch - 1)
        before = position.topics[topic]
        after = self._position(batch)
        ranges = tuple(
            OffsetRange(TopicPartition(topic, p), offset, after.topics[topic].offsets[p])
            for p, offset in before.offsets.items()
        )
        at = self._time(batch)
        plan = replace(
            self.plan,
            batch_id=batch,
            clock=at,
            position=position,
            work=Live(topics={topic: TopicPlan(topic_id=before.topic_id, ranges=ranges)}),
        )
        pane = micros(at) // 10_000_000 * 10_000_000
        read = self.records * len(ranges)
        commit = replace(
            self.last,
            batch_id=batch,
            plan_hash=_HASH,
            position=after,
            accounts={topic: Account(read=read, aggregated=read)},
            panes={name: PaneSpan(pane, pane) for name in self.last.panes},
            started=at,
            at=at + timedelta(seconds=1),
        )
        audited = replace(self.audited, batch_id=batch, at=at)
        return Planned(plan=plan, executor=self.executor, at=at), audited, commit

    def _position(self, batch: int) -> Position:
        before, more = self.last.position, batch - self.last.batch_id
        [(name, topic)] = before.topics.items()
        now = micros(self._time(batch))
        return replace(
            before,
            batch_id=batch,
            watermark=now,
            topics={
                name: TopicPosition(
                    topic_id=topic.topic_id,
                    offsets={p: o + more * self.records for p, o in topic.offsets.items()},
                    clocks={p: PartitionClock(max_event_time=now, active_at=now) for p in topic.offsets},
                )
            },
            slices=SliceSet(through=batch),
        )

    def _time(self, batch: int) -> datetime:
        return self.start + batch * self.step


Number = tuple[bool, int, int]
"""Whether it is a moment; its value in batch 0, and how much it grows with each."""


@dataclass(frozen=True, slots=True)
class Template:
    """The text of one event of every batch."""

    parts: tuple[str, ...]
    numbers: tuple[Number, ...]

    @staticmethod
    def of(text: Callable[[int], str], batch: int) -> Template:
        """What the texts of this batch and the next ones have in common."""
        one, two = _TOKEN.finditer(text(batch)), _TOKEN.findall(text(batch + 1))
        parts, numbers, end = [], [], 0
        for found, other in zip(one, two, strict=True):
            if found[0] != other:
                low, high = _value(found[0]), _value(other)
                parts.append(text(batch)[end : found.start()])
                numbers.append((other[0] == '"', low - batch * (high - low), high - low))
                end = found.end()
        made = Template((*parts, text(batch)[end:]), tuple(numbers))
        for other in (batch, batch + 1, batch + 2, batch + 7_919):
            assert made.text(other) == text(other)
        return made

    def text(self, batch: int) -> str:
        """The event of a batch."""
        found = [self.parts[0]]
        for (moment, start, step), part in zip(self.numbers, self.parts[1:], strict=True):
            value = start + batch * step
            found += [f'"{_iso(value)}"' if moment else str(value), part]
        return "".join(found)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _value(token: str) -> int:
    if token[0] != '"':
        return int(token)
    return micros(datetime.fromisoformat(token[1:-1]))


def _iso(value: int) -> str:
    return (_EPOCH + timedelta(microseconds=value)).isoformat()


def append_many(uri: str, pipeline: str, course: Course, batches: range, after: int) -> int:
    """Append the events of these batches, which come behind event `after`; the number of the last event."""
    kinds = (Planned, Audited, Committed)
    texts = [Template.of(lambda b, n=n: to_json(course.events(b)[n]), batches[0]) for n in range(3)]
    plans = Template.of(lambda b: to_json(course.events(b)[0].plan), batches[0])

    def rows() -> Iterator[tuple[int, type[Event], int, datetime, str]]:
        sequence = after
        for batch in batches:
            at = course.start + batch * course.step
            for kind, template in zip(kinds, texts, strict=True):
                sequence, text = sequence + 1, template.text(batch)
                if kind is Committed:
                    text = text.replace(_HASH, hashlib.sha256(plans.text(batch).encode()).hexdigest())
                yield sequence, kind, batch, at, text

    sequence = after
    source = rows()
    while some := list(islice(source, _ROWS)):
        sequence = some[-1][0]
        table = pa.table(
            {
                "sequence": [s for s, *_ in some],
                "format_version": [FORMAT_VERSION] * len(some),
                "event": [NAMES[kind] for _, kind, *_ in some],
                "pipeline": [pipeline] * len(some),
                "batch_id": [batch for _, _, batch, *_ in some],
                "attempt": [1] * len(some),
                "recorded_at": [at for *_, at, _ in some],
                "body": [text for *_, text in some],
            },
            schema=SCHEMA,
        )
        done = CommitProperties(app_transactions=[Transaction(f"tidemill/ledger/{pipeline}", sequence)])
        write_deltalake(DeltaTable(uri), table, mode="append", commit_properties=done)
    return sequence
