"""Where a pipeline stands, from its ledger and the log."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.core.errors import DeclarationError, ForeignTable, LogError, TidemillError
from tidemill.core.plan.amendments import count
from tidemill.core.protocol.codec import encode
from tidemill.core.protocol.summary import ACCOUNT, account_of, warned_json, watermark_json
from tidemill.core.time.times import moment
from tidemill.log.interface import HoldsBack
from tidemill.log.pipeline_topics import held_of, readable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.core.bind.flow import Flow
    from tidemill.core.log.offsets import OffsetRange
    from tidemill.core.plan.position import Gone, TopicPosition
    from tidemill.core.protocol.view import OpenBatch, View
    from tidemill.log.interface import Log
    from tidemill.project.project import Project
    from tidemill.repair.unfinished import Unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """One partition: the offsets that the log holds, and the next offset to read.

    `committed` is None if the partition was never read. `max_event_time` is in microseconds. `waiting` counts offsets
    after the end that wait for an open transaction. A partition is `missing` if it was read but is not in the log; a
    person may have declared it `gone`.
    """

    topic: str
    held: OffsetRange
    committed: int | None
    max_event_time: int | None
    waiting: int = 0
    missing: bool = False
    gone: Gone | None = None

    @property
    def lag(self) -> int:
        """How many records of the log are not committed."""
        start = self.held.from_offset if self.committed is None else self.committed
        return max(self.held.until_offset - start, 0)

    @property
    def lost(self) -> int:
        """How many records retention deleted before they were read."""
        return 0 if self.committed is None else max(self.held.from_offset - self.committed, 0)

    @property
    def cut(self) -> int:
        """How many offsets the log ends before the committed one: it has lost records that were read."""
        return 0 if self.committed is None or self.missing else max(self.committed - self.held.until_offset, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """A pipeline at one moment. `problem` says why partitions are missing, if some are.

    `refused` says why the next batch cannot be planned: the present declaration does not fit the committed batches, or
    another pipeline owns a table that it publishes. `rebuild` is a generation that is being built.
    """

    flow: Flow
    view: View
    partitions: tuple[PartitionStatus, ...]
    problem: str = ""
    refused: TidemillError | None = None
    rebuild: Unfinished | None = None
    generation: int = 1

    @property
    def lag(self) -> int:
        """How many records are not committed, over all inputs."""
        return sum(p.lag for p in self.partitions)


def status_of(project: Project, name: str) -> PipelineStatus:
    """Return where a pipeline stands. A missing topic is reported as a problem and raises no error.

    Raises:
        DeclarationError: the pipeline does not exist.
        LedgerDamaged: its ledger cannot be read.
    """
    view, log = project.ledger(name).view(), project.log()
    flow = project.pipeline(name)
    refused = _refused(flow, view) or _of_others(project, flow, view)
    partitions: list[PartitionStatus] = []
    problems = []
    try:
        flow = readable(flow, log, view.position)
    except (LogError, DeclarationError) as error:
        problems.append(error.message)
    for source in flow.inputs:
        known, topic = view.position.topics.get(source.topic), source.topic
        try:
            partitions += _of_topic(log, topic, known)
        except LogError as error:
            problems.append(error.message)
        if known is not None:
            with suppress(LogError):
                partitions += _missing(topic, known, held_of(log, [topic])[topic], view.position.gone or ())
    return PipelineStatus(
        flow=flow,
        view=view,
        partitions=tuple(partitions),
        problem="; ".join(problems),
        refused=refused,
        rebuild=_being_built(project, name),
        generation=project.generations.of(name),
    )


def _being_built(project: Project, name: str) -> Unfinished | None:
    """The generation that is being built. Modules that load Spark are imported only if there is one."""
    if not project.generations.begun(name):
        return None
    from tidemill.repair.unfinished import unfinished

    return unfinished(project, name)


def _refused(flow: Flow, view: View) -> TidemillError | None:
    from tidemill.run.claiming import change_of

    try:
        change_of(flow, view)
    except TidemillError as error:
        return error
    return None


def _of_others(project: Project, flow: Flow, view: View) -> TidemillError | None:
    """Why a table cannot be published: another pipeline owns it. A table that its last commit left so is not opened."""
    from tidemill.core.bind.flow import PUBLISHED
    from tidemill.tables.files import is_newest
    from tidemill.tables.handles import newest

    uris = project.uris(flow.name)
    for sink in flow.sinks:
        spec, mark = uris.published_table(sink), view.position.tables.get(PUBLISHED + sink.table)
        try:
            if not is_newest(spec, None if mark is None else mark.version):
                newest(spec, thoroughly=True)
        except ForeignTable as error:
            return error
        # Other faults of tables are not for `status` to find.
        except TidemillError:
            continue
    return None


def held_back(project: Project, name: str) -> int:
    """How many offsets of a pipeline's topics wait for open transactions; 0 if that cannot be found out."""
    with suppress(TidemillError):
        if isinstance(project.log(), HoldsBack):
            return sum(p.waiting for p in status_of(project, name).partitions)
    return 0


def _of_topic(log: Log, topic: str, position: TopicPosition | None) -> list[PartitionStatus]:
    found = []
    waiting = log.waiting(topic) if isinstance(log, HoldsBack) else {}
    for number, held in sorted(log.bounds(topic).items()):
        clock = position.clocks.get(number) if position else None
        found.append(
            PartitionStatus(
                topic=topic,
                held=held,
                committed=position.offsets.get(number) if position else None,
                max_event_time=clock.max_event_time if clock else None,
                waiting=waiting.get(number, 0),
            )
        )
    return found


def _missing(
    topic: str, position: TopicPosition, held: Mapping[int, OffsetRange], gone: Sequence[Gone]
) -> list[PartitionStatus]:
    """The partitions that were read but are not in the log."""
    from tidemill.core.log.offsets import OffsetRange, TopicPartition

    declared = {each.place: each for each in gone}
    places = {TopicPartition(topic, p): offset for p, offset in sorted(position.offsets.items()) if p not in held}
    return [
        PartitionStatus(
            topic=topic,
            held=OffsetRange(place, offset, offset),
            committed=offset,
            max_event_time=position.clocks[place.partition].max_event_time,
            missing=True,
            gone=declared.get(place),
        )
        for place, offset in places.items()
    ]


def holder_state(batch: OpenBatch) -> str:
    """Whether the process that holds an open batch is alive, as far as this host can tell."""
    from tidemill.ledger.process import is_gone, is_visible

    if not is_visible(batch.executor):
        return "on another host"
    return "gone" if is_gone(batch.executor) else "running"


def status_json(found: PipelineStatus) -> dict[str, object]:
    """The status as JSON values."""
    commit, opened = found.view.last_commit, found.view.open_batch
    return {
        "pipeline": found.flow.name,
        "declared": True,
        "generation": found.generation,
        "batch_id": found.view.position.batch_id,
        "watermark": watermark_json(found.view.position.watermark),
        "lag": found.lag,
        "problem": found.problem or None,
        "refused": None if found.refused is None else {"why": found.refused.message, "fix": found.refused.fix},
        "last_commit": None
        if commit is None
        else {
            "batch_id": commit.batch_id,
            "attempt": commit.attempt,
            "at": commit.at.isoformat(),
            **{part: getattr(account_of(commit), part) for part in ACCOUNT},
            "broken": list(commit.broken or ()),
            "warned": warned_json(commit),
        },
        "open_batch": None if opened is None else _open_json(opened),
        "backfill": _backfill_json(found.view),
        "since": {table: encode(since) for table, since in (found.view.position.since or {}).items()},
        "superseded_by": None if found.view.superseded is None else found.view.superseded.generation,
        "rebuild": None if found.rebuild is None else _rebuild_json(found.rebuild),
        "partitions": [_partition_json(p) for p in found.partitions],
    }


def _open_json(opened: OpenBatch) -> dict[str, object]:
    return {
        "batch_id": opened.plan.batch_id,
        "attempt": opened.attempt,
        "records": opened.plan.records,
        "held_by": opened.executor.identity,
        "host": opened.executor.host,
        "pid": opened.executor.pid,
        "holder": holder_state(opened),
        "since": opened.claimed_at.isoformat(),
        "blocked": opened.is_blocked,
        "decided": None
        if opened.decided is None
        else {"decision": opened.decided.decision.value, "by": opened.decided.by, "why": opened.decided.why},
    }


def _backfill_json(view: View) -> dict[str, object] | None:
    job = view.position.backfill
    if job is None:
        return None
    return {"since": job.since, "batches": len(job.slices), "left": count(job.left), "by": job.by, "why": job.why}


def _rebuild_json(found: Unfinished) -> dict[str, object]:
    opened = None if found.view is None else found.view.open_batch
    return {
        "generation": found.number,
        "outdated": found.outdated,
        "readable": found.view is not None,
        "open_batch": None if opened is None else _open_json(opened),
    }


def _partition_json(found: PartitionStatus) -> dict[str, object]:
    time = found.max_event_time
    return {
        "topic": found.topic,
        "partition": found.held.topic_partition.partition,
        "committed": found.committed,
        "from_offset": found.held.from_offset,
        "until_offset": found.held.until_offset,
        "lag": found.lag,
        "lost": found.lost,
        "cut": found.cut,
        "waiting": found.waiting,
        "missing": found.missing,
        "gone": None if found.gone is None else {"by": found.gone.by, "why": found.gone.why},
        "max_event_time": None if time is None else moment(time).isoformat(),
    }
