"""Step 6 of a batch, second half: send published rows to topics, each batch once.

Sent rows cannot be taken back. Rows without windows are therefore sent only by batches that read them for the first
time or repair them; firings that a repair computes again are not. Rows of windows are sent whenever they are published,
under their key: the newest row counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import updates_rows
from tidemill.core.declare.guarantees import Guarantee
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import TableMark
from tidemill.core.protocol.codec import fingerprint
from tidemill.core.protocol.failpoints import boundary
from tidemill.engine.publish.messages import messages
from tidemill.engine.publish.sink_rows import SinkRows
from tidemill.engine.storage.expected_versions import published
from tidemill.log.interface import Message, OutgoingBatch, Sends
from tidemill.project.project import Project


def send(
    project: Project, flow: Flow, plan: BatchPlan, staged: Sequence[SinkRows], marks: Mapping[str, TableMark]
) -> None:
    """Send the staged rows of every table that has a topic. Sends nothing while a generation is being rebuilt.

    `marks` describe the tables that already have the rows: a topic counts the batches of one table.

    Raises:
        Fenced: a newer batch was sent.
        LogError: the topic does not exist, or nobody knows whether it has the rows; the next attempt finds out.
    """
    log = project.log()
    if not isinstance(log, Sends) or project.generations.building is not None:
        return
    for item in staged:
        topic = item.sink.topic
        of_rows = not updates_rows(item.sink)
        if (
            topic is None
            or not (item.count or item.gone)
            or (of_rows and (plan.job is not None or item.keys is not None))
        ):
            continue
        outgoing = OutgoingBatch(
            topic=topic,
            sender=f"{plan.pipeline}.{item.sink.table}.{marks[published(item.sink)].table_id}",
            batch_id=plan.batch_id,
            plan_hash=fingerprint(plan),
            at=plan.clock,
            headers=_headers(plan, item),
            once=flow.spec.guarantee is not Guarantee.AT_LEAST_ONCE,
        )
        with boundary(f"sent:{topic}", plan.batch_id):
            log.send(outgoing, (Message(key=k, value=v) for k, v in messages(item)))


def _headers(plan: BatchPlan, item: SinkRows) -> dict[str, str]:
    told = {"pipeline": plan.pipeline, "table": item.sink.table, "batch": str(plan.batch_id), "kind": plan.kind.value}
    return {f"tidemill.{name}": value for name, value in told.items()}
