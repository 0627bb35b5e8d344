"""Partitions that are gone from the log for good: batches continue without them after a person has declared it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime

from tidemill.core.errors import AmendmentError
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Gone
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.view import View
from tidemill.engine.spark.session import Spark
from tidemill.ledger.process import this_process
from tidemill.log.pipeline_topics import held_of
from tidemill.repair.job import AmendmentJob
from tidemill.repair.selection import never_read
from tidemill.run.claiming import Request, next_plan
from tidemill.run.looking import look_of
from tidemill.run.sources import upstream_of


def declare_gone(amendment: AmendmentJob, places: Collection[TopicPartition]) -> Iterator[Committed]:
    """Execute the batch that continues without these partitions. It reads the next offsets of the others.

    Offsets and state of these partitions are kept. If one comes back, it is read from its committed offset on.

    Raises:
        AmendmentError: the pipeline never read one of them, or one is still in the log.
        LogError: another partition is missing too.
    """

    def plan(view: View) -> BatchPlan | None:
        wanted = _still_wanted(amendment, view, places)
        if not wanted:
            return None
        project, log = amendment.project, amendment.project.log()
        request = Request(
            executor=this_process(amendment.identity),
            clock=datetime.now(UTC),
            limit=project.limit(amendment.most),
            gone=tuple(Gone(place=tp, by=amendment.reason.by, why=amendment.reason.why) for tp in wanted),
            look=look_of(project, log, amendment.session and Spark.later(amendment.session)),
        )
        return next_plan(project.pipeline(amendment.pipeline), log, view, request, upstream_of(project))

    return amendment.until_done(plan)


def _still_wanted(amendment: AmendmentJob, view: View, places: Collection[TopicPartition]) -> list[TopicPartition]:
    position = view.position
    known = sorted(TopicPartition(topic, p) for topic, at in position.topics.items() for p in at.offsets)
    held = held_of(amendment.project.log(), {tp.topic for tp in places})
    for tp in places:
        if tp not in known:
            error = never_read(amendment.pipeline, tp, known)
            error.fix += "; what was never read need not be declared gone"
            raise error
        if tp.partition in held[tp.topic]:
            raise AmendmentError(
                f"{amendment.pipeline}: {tp} is not gone: the log shows {held[tp.topic][tp.partition]}"
            )
    declared = {each.place for each in position.gone or ()}
    return [tp for tp in places if tp not in declared]
