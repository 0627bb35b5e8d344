"""Where a pipeline stands, from its ledger and the log."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from tidemill.core.counts import many
from tidemill.core.errors import DeclarationError, ForeignTable, LogError, TidemillError
from tidemill.core.plan.amendments import count
from tidemill.core.protocol.codec import encode
from tidemill.core.protocol.summary import ACCOUNT, account_of, warned_json, watermark_json
from tidemill.core.time.watermarks import BEGINNING
from tidemill.inspect.partitions import PartitionStatus, missing_of, of_topic, partition_json
from tidemill.log.interface import HoldsBack
from tidemill.log.pipeline_topics import held_of, readable

if TYPE_CHECKING:
    from tidemill.core.bind.flow import Flow
    from tidemill.core.log.offsets import TopicPartition
    from tidemill.core.protocol.view import OpenBatch, View
    from tidemill.project.project import Project
    from tidemill.repair.unfinished import Unfinished


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

    @property
    def slowest(self) -> tuple[TopicPartition, int] | None:
        """The partition with the least watermark, and that; None if none has one."""
        delays, clocks = self.flow.delays, self.view.position.clocks
        marks = {tp: clock.watermark(delays[tp.topic]) for tp, clock in clocks.items() if tp.topic in delays}
        return min(((tp, mark) for tp, mark in marks.items() if mark != BEGINNING), key=itemgetter(1), default=None)


def status_of(project: Project, name: str, view: View | None = None) -> PipelineStatus:
    """Return where a pipeline stands. A missing topic is reported as a problem and raises no error.

    `view` is that of its ledger, if the caller has just read it.

    Raises:
        DeclarationError: the pipeline does not exist.
        LedgerDamaged: its ledger cannot be read.
    """
    view, log = view or project.ledger(name).view(), project.log()
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
            partitions += of_topic(log, source, known)
        except LogError as error:
            problems.append(error.message)
        if known is not None:
            with suppress(LogError):
                partitions += missing_of(source, known, held_of(log, [topic])[topic], view.position.gone or ())
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


def what_waits(project: Project, name: str) -> str:
    """What a pipeline leaves in the log when it has nothing to do, as text; empty if that cannot be found out."""
    with suppress(TidemillError):
        drifts = project.pipeline(name).spec.max_drift is not None
        if drifts or isinstance(project.log(), HoldsBack):
            found, told = status_of(project, name), list[str]()
            if waiting := sum(p.waiting for p in found.partitions):
                told.append(f"{waiting:,} offsets wait for an open transaction")
            if drifts and found.lag:
                told.append(f"waiting for a slower partition (max_drift): {many(found.lag, 'record')}")
            return "; ".join(told)
    return ""


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
        "table_watermarks": {t: watermark_json(at) for t, at in (found.view.position.lagging or {}).items()},
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
        "partitions": [partition_json(p) for p in found.partitions],
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
