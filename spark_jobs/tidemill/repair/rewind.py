"""Rewinds: take a pipeline back to its position and tables after an earlier batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tidemill.core.bind.flow import PUBLISHED
from tidemill.core.bind.sinks import StatefulSink
from tidemill.core.declare.operators import StartFrom
from tidemill.core.errors import AmendmentError, OffsetsLost
from tidemill.core.history.index import asked_of
from tidemill.core.history.past import Past
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.amendments import Rewind
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position, Since
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.view import View
from tidemill.core.repair.planning import plan_rewind
from tidemill.core.repair.state_retention import back_to
from tidemill.engine.storage.state_table import check_horizon
from tidemill.log.pipeline_topics import held_of
from tidemill.repair.job import AmendmentJob
from tidemill.repair.whole_log import check_log
from tidemill.tables.handles import newest
from tidemill.tables.interface import TableSpec
from tidemill.tables.keeping import KeptTable


def rewind(amendment: AmendmentJob, to: int) -> Iterator[Committed]:
    """Execute the batch after which offsets, watermark, state and tables are as they were after batch `to`.

    An open batch is completed first, and taken back with the others.

    Raises:
        AmendmentError: batch `to` has no commit or is the last one; or a table is no longer declared and would keep the
            rows of batches that are taken back.
        OffsetsLost: the log no longer holds offsets that must be read again.
        SegmentDamaged: a file of the log that must be read again is damaged.
        TopicRecreated: a topic that must be read again was created anew.
        EngineError: a table no longer has its version from then, or not its state.
    """

    def plan(view: View) -> BatchPlan:
        position, versions = _checked(amendment, view, amendment.ledger.past(), to)
        then = Rewind(position=position, versions=versions, reason=amendment.reason)
        return plan_rewind(amendment.flow, view, then, clock=datetime.now(UTC))

    while (commit := amendment.execute(plan)) is not None:
        yield commit
        if commit.kind is Kind.REWIND and _target(amendment, commit) == to:
            return


def _target(amendment: AmendmentJob, commit: Committed) -> int | None:
    """The batch that this rewind went back to. Another person may have requested it."""
    plans = amendment.plans_since(commit.batch_id)
    rewinds = (p.work for p in plans if p.batch_id == commit.batch_id)
    return next((work.position.batch_id for work in rewinds if isinstance(work, Rewind)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What kind of batch somebody asked for, and why."""

    kind: str
    by: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """What a rewind would do: batches it takes back, offsets it makes the pipeline read again, versions of the tables.

    `asked` gives by batch the repairs and backfills that somebody asked for, `decisions` by table the decisions about
    the meaning of numbers. Both are taken back with these batches.
    """

    batches: tuple[int, ...]
    ranges: tuple[OffsetRange, ...]
    versions: Mapping[str, int | None]
    asked: Mapping[int, Asked]
    decisions: Mapping[str, Since]


def preview(amendment: AmendmentJob, to: int) -> TakenBack:
    """Return what `rewind` would do now, without writing anything.

    Raises:
        TidemillError: `rewind` would refuse.
    """
    view, past = amendment.ledger.view(), amendment.ledger.past()
    position, versions = _checked(amendment, view, past, to)
    later = past.generation(lambda zone: zone.batches[1] > to)
    return TakenBack(
        batches=tuple(b.batch_id for b in later if b.batch_id > to),
        ranges=tuple(r for r in _read_again(view, position, past.begin) if r),
        versions={spec.name: versions.get(spec.name) for spec in tables_of(amendment) if newest(spec) is not None},
        asked=_asked(amendment, to),
        decisions=undone(view.position, to),
    )


def _asked(amendment: AmendmentJob, to: int) -> dict[int, Asked]:
    """The batches after `to` that somebody asked for. A batch that was planned and did not commit is among them."""
    plans = {plan.batch_id: (plan.kind.value, asked_of(plan)) for plan in amendment.plans_since(to + 1)}
    return {batch: Asked(kind=kind, by=by.by, why=by.why) for batch, (kind, by) in plans.items() if by is not None}


def undone(position: Position, to: int) -> Mapping[str, Since]:
    """The decisions about the meaning of numbers, by table, that a rewind to batch `to` takes back."""
    return {table: since for table, since in (position.since or {}).items() if since.batch_id > to}


def _checked(amendment: AmendmentJob, view: View, past: Past, to: int) -> tuple[Position, dict[str, int | None]]:
    """Return position and table versions after batch `to`, after checking that a rewind can restore them."""
    position = back_to(amendment.flow, _position(amendment, view, past, to), view.position)
    _check_log(amendment, view, position, past.begin)
    _check_left(amendment, view, past, to)
    for sink in amendment.flow.sinks:
        if isinstance(sink, StatefulSink):
            check_horizon(amendment.uris, sink, to)
    published = {sink.table for sink in amendment.flow.sinks}
    own = {amendment.uris.corrections().name, *(spec.name for spec in tables_of(amendment))} - published
    # The quarantine and the late table belonged to the generation itself before it was published.
    found = past.versions(published, since=past.since, through=to) | past.versions(own, since=1, through=to)
    versions: dict[str, int | None] = {**found}
    for spec in tables_of(amendment):
        if newest(spec) is not None and (version := versions.get(spec.name)) is not None:
            KeptTable(spec).check_back(version)
    return position, versions


def tables_of(amendment: AmendmentJob) -> tuple[TableSpec, ...]:
    """The tables that a rewind restores."""
    uris = amendment.uris
    return (*(uris.published_table(s) for s in amendment.flow.sinks), uris.quarantine(), uris.late())


def _position(amendment: AmendmentJob, view: View, past: Past, to: int) -> Position:
    first, newest_batch = past.first_of_generation, past.newest
    if to == 0 and first is not None and first.kind is not Kind.SWITCH:
        return Position()
    found = past.batch(to) if to >= past.since else None
    if found is None:
        known = "no batch has"
        if first is not None and newest_batch is not None:
            known = f"batches {first.batch_id} to {newest_batch.batch_id} have"
        raise AmendmentError(
            f"{amendment.pipeline}: batch {to} has not committed; {known}",
            fix=f"`tidemill history {amendment.pipeline} --all` shows all",
        )
    if to == view.position.batch_id:
        raise AmendmentError(
            f"{amendment.pipeline}: batch {to} is the last that committed: there is nothing to take back"
        )
    return amendment.ledger.commit(found.sequence).position


def _check_log(amendment: AmendmentJob, view: View, position: Position, first: Mapping[TopicPartition, int]) -> None:
    """Refuse if the log no longer holds everything that must be read again. Opens all files with it."""
    log = amendment.project.log()
    then = amendment.flow.reading(view.position.topics, known=position.topics)
    latest = {source.topic for source in then.inputs if source.start is StartFrom.LATEST}
    for topic in view.position.topics:
        if topic not in position.topics and topic in latest:
            raise AmendmentError(
                f"{amendment.pipeline}: {topic} is read from its end on: before its first batch there is no offset "
                "to go back to",
                fix="rewind to the first batch or a later one",
            )
    held, read_again = held_of(log, view.position.topics), [*_read_again(view, position, first)]
    for again in read_again:
        place = again.topic_partition
        for lost in again.without(held[place.topic].get(place.partition)):
            raise OffsetsLost(
                f"{amendment.pipeline}: {place}: offsets {lost.from_offset} to {lost.until_offset - 1} are gone, and "
                "would have to be read again; nothing was moved",
                fix="rewind less far",
            )
    by_topic = {topic: tuple(r for r in read_again if r and r.topic_partition.topic == topic) for topic in held}
    check_log(amendment.pipeline, log, view, by_topic, fix="rewind less far")


def _check_left(amendment: AmendmentJob, view: View, past: Past, to: int) -> None:
    """Refuse if a table is no longer declared: a rewind does not restore it, and newer rows would stay in it."""
    known = {name.removeprefix(PUBLISHED) for name in view.position.tables if name.startswith(PUBLISHED)}
    for table in sorted(known - {sink.table for sink in amendment.flow.sinks}):
        spec = TableSpec(name=table, uri=amendment.uris.published(table), storage=amendment.uris.storage, fields=())
        since = max(to + 1, past.since)
        wrote = past.version(table, since=since, through=view.position.batch_id) is not None
        if wrote and newest(spec) is not None:
            raise AmendmentError(
                f"{amendment.pipeline}: batches after {to} published {table}, which is declared no more: their rows "
                "would stay in it",
                fix=f"declare {table} again until the rewind is done, or move its table away ({spec.uri})",
            )


def _read_again(view: View, position: Position, first: Mapping[TopicPartition, int]) -> Iterator[OffsetRange]:
    """Yield what was read since `position`. A partition unknown to it was read from its first offset on.

    The range is empty for a partition that an earlier rewind already took back further than `position`.
    """
    for topic, now in view.position.topics.items():
        then = position.topics[topic].offsets if topic in position.topics else {}
        for partition, end in now.offsets.items():
            place = TopicPartition(topic, partition)
            begin = then.get(partition, first.get(place, 0))
            yield OffsetRange(place, min(begin, end), end)
