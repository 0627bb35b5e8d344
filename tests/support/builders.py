"""Small builders for plans, pipelines and contracts of tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tidemill import Count, Pipeline, Tumbling
from tidemill.core.bind.binding import bind
from tidemill.core.bind.flow import Flow
from tidemill.core.contract.contract import Contract, Format
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.plan.work import Live, TopicPlan
from tidemill.core.protocol.codec import fingerprint
from tidemill.core.protocol.events import Committed, Executor

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = Contract(
    name="events",
    version="1",
    format=Format.JSON,
    fields=(
        Field(name="ts", type=Scalar.TIMESTAMP, required=True),
        Field(name="user", type=Scalar.STRING),
        Field(name="amount", type=Scalar.LONG),
    ),
)


def a_table(name: str, *columns: str) -> Contract:
    """A contract of a published table, all of whose columns are BIGINT but the window's."""
    kinds = {"window_start": Scalar.TIMESTAMP, "window_end": Scalar.TIMESTAMP, "user": Scalar.STRING}
    return Contract(
        name=name, version="1", fields=tuple(Field(name=c, type=kinds.get(c, Scalar.LONG)) for c in columns)
    )


COUNTS = a_table("counts", "window_start", "window_end", "n")
CONTRACTS = {"events": EVENTS, "counts": COUNTS}


def a_flow(*, window: Any = None, delay: str = "0 s", idle_timeout: str | None = "60 s", **read: Any) -> Flow:
    """A pipeline that counts the events of topic `t`."""
    with Pipeline("p", every="1 minute", idle_timeout=idle_timeout) as pipeline:
        events = pipeline.read("t", contract="events", event_time="ts", delay=delay, **read)
        events.window(window or Tumbling("10 seconds")).aggregate(n=Count()).publish("counts", contract="counts")
    return bind(pipeline.spec, CONTRACTS)


def tp(partition: int = 0, topic: str = "t") -> TopicPartition:
    """A topic-partition."""
    return TopicPartition(topic, partition)


def a_plan(*, batch_id: int = 1, position: Position | None = None, until: Mapping[int, int] | None = None) -> BatchPlan:
    """A plan that reads topic `t` from where `position` stands up to `until`."""
    before = position or Position()
    known = before.topics["t"].offsets if "t" in before.topics else {}
    ranges = tuple(OffsetRange(tp(p), known.get(p, 0), end) for p, end in (until or {0: 10}).items())
    return BatchPlan(
        pipeline="p",
        batch_id=batch_id,
        clock=NOW,
        position=before,
        logical_hash="hash",
        work=Live(topics={"t": TopicPlan(topic_id="id", ranges=ranges)}),
    )


def a_commit(plan: BatchPlan, *, attempt: int = 1) -> Committed:
    """The commit of a plan, whose records brought no event time."""
    position = plan.position.after(
        batch_id=plan.batch_id,
        attempt=attempt,
        topics=plan.topics_after({}),
        watermark=plan.position.watermark,
        gone=plan.gone_after,
    )
    return Committed(
        batch_id=plan.batch_id,
        attempt=attempt,
        plan_hash=fingerprint(plan),
        position=position,
        accounts={},
        started=NOW,
        at=NOW,
    )


def an_executor(identity: str = "me") -> Executor:
    """Somebody who executes batches."""
    return Executor(identity=identity, host="host", pid=1, process_started="1")
