"""Backfills: offsets of the past are read again, and then all results computed from them are replaced at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.sinks import SingleSink, WindowedSink
from tidemill.core.change.compatibility import check_compatibility
from tidemill.core.errors import AmendmentError
from tidemill.core.history.coverage import Cover, batches_of, still_held
from tidemill.core.history.lineage import with_superseded
from tidemill.core.plan.amendments import Ranges, count
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.view import View
from tidemill.core.repair.planning import backfill_of, check_can_give_up, plan_backfill, plan_giving_up
from tidemill.core.repair.selection import OfWindows, Wanted
from tidemill.core.repair.state_retention import forgotten_sessions
from tidemill.core.repair.whole_windows import left_of
from tidemill.core.time.panes import Window
from tidemill.core.time.times import show_moment
from tidemill.engine.aggregate.firing import Refiring
from tidemill.log.pipeline_topics import held_of
from tidemill.repair.aside import count_rejected, late_of
from tidemill.repair.job import AmendmentJob
from tidemill.repair.replaying import Replaying, superseded_batches
from tidemill.repair.selection import wanted_covers
from tidemill.repair.whole_log import check_log

_A_BATCH = 1.0
_RECORDS_A_SECOND = 100_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a backfill would do. `windows` are those that change or may change, by table; `seconds` is an estimate.

    `left` counts, by table, the windows that keep their published rows: their state was removed, and the backfill does
    not read all of their records. `unknown` names tables that earlier batches did not publish: more of their windows
    may change than `windows` names. `late` counts by table the late rows among the records, with the stretch of their
    windows, if these have bounds: they count now. `rejected` counts the rejected ones, which are judged again. `asked`
    is how many records were asked for, before the backfill was widened to whole batches; None if windows were.
    `replaying` says what is computed again of `firings`, the tables of firings; None without any.
    """

    covers: tuple[Cover, ...]
    ranges: Ranges
    batches: int
    windows: Mapping[str, tuple[Window, ...]]
    left: Mapping[str, int]
    unknown: tuple[str, ...]
    seconds: float
    late: Mapping[str, tuple[int, Window | None]]
    rejected: int
    asked: int | None = None
    replaying: Replaying | None = None
    firings: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """How many records would be read."""
        return count(self.ranges)


def backfill(amendment: AmendmentJob, wanted: Wanted, *, accept_loss: bool = False) -> Iterator[Committed]:
    """Execute the batches of a backfill and yield each commit. Live batches run in between if the log has more.

    Readers see no change before the last batch, which replaces every window of the old and the new results.

    Raises:
        AmendmentError: another backfill is incomplete, no batch has read any of the wanted offsets, or nothing would
            change because the state of all these windows was removed and other offsets contributed to them.
        OffsetsLost: the log no longer holds some of the offsets, and `accept_loss` is False.
        TidemillError: a batch did not commit; `resume` continues the backfill.
    """
    began: list[int] = []

    def plan(view: View) -> BatchPlan | None:
        job = view.position.backfill
        if job is None or not began:
            if began and (plans := _of_job(amendment, began[0])):
                _check_not_given_up(amendment, plans)
                return None
            job = _job_of(amendment, view, _held(amendment, view, wanted, accept_loss=accept_loss))
            began[:] = [job.since]
        return plan_backfill(amendment.flow, view, job, clock=datetime.now(UTC), most=amendment.batch_records)

    def is_last(commit: Committed) -> bool:
        """Whether this commit completes this job. Another person's job may have been open before it."""
        if not _ends_a_job(commit) or not began:
            return False
        return commit.batch_id in [p.batch_id for p in _of_job(amendment, began[0])]

    return amendment.by_turns(plan, is_last)


def _of_job(amendment: AmendmentJob, since: int) -> Sequence[BatchPlan]:
    """The plans of the job that began with this batch and that the same person requested for the same reason."""
    words = (amendment.reason.by, amendment.reason.why)
    jobs = ((p, p.job) for p in amendment.plans_since(since))
    return [p for p, job in jobs if job is not None and job.since == since and (job.by, job.why) == words]


def _check_not_given_up(amendment: AmendmentJob, plans: Sequence[BatchPlan]) -> None:
    """If the job is no longer open, check that its last batch completed it: someone may have given it up."""
    last = plans[-1].job
    if last is None or not last.publishes:
        raise AmendmentError(
            f"{amendment.pipeline}: the backfill that began with batch {plans[0].batch_id} was given up; nothing "
            "of it is seen",
            fix="begin it again, if that was not meant",
        )


def _ends_a_job(commit: Committed) -> bool:
    return commit.kind is Kind.BACKFILL and commit.position.backfill is None


def resume(amendment: AmendmentJob) -> Iterator[Committed]:
    """Execute the remaining batches of the open backfill.

    Raises:
        AmendmentError: no backfill is open.
    """

    def plan(view: View) -> BatchPlan:
        job = view.position.backfill
        if job is None:
            raise AmendmentError(
                f"{amendment.pipeline}: no backfill is open", fix="begin one; `--dry-run` shows what it does"
            )
        return plan_backfill(amendment.flow, view, job, clock=datetime.now(UTC), most=amendment.batch_records)

    return amendment.by_turns(plan, _ends_a_job)


def cancel(amendment: AmendmentJob) -> Iterator[Committed]:
    """Execute the batch that discards the open backfill. Readers never saw any of its results.

    Raises:
        AmendmentError: no backfill is open, or its last batch, which publishes, has begun.
    """
    check_can_give_up(amendment.flow, amendment.ledger.view())
    return amendment.by_turns(lambda view: plan_giving_up(amendment.flow, view, clock=datetime.now(UTC)), _ends_a_job)


def preview(amendment: AmendmentJob, wanted: Wanted, *, accept_loss: bool = False) -> Preview:
    """Return what `backfill` would do now, without writing anything.

    Raises:
        AmendmentError: `backfill` would refuse.
        Incompatible: a table has other keys, windows or aggregates than its state.
        OffsetsLost: the log no longer holds some of the offsets, and `accept_loss` is False.
    """
    view = amendment.ledger.view()
    check_compatibility(amendment.flow, view)
    held = _held(amendment, view, wanted, accept_loss=accept_loss)
    covers, ranges, job = held.covers, held.ranges, _job_of(amendment, view, held)
    records = count(ranges)
    batches = 1 if job.replay is not None else max(-(-records // amendment.batch_records), 1)
    read = [c for c in covers if c.batch.folded is None]
    pace = [count(c.ranges) / max((c.batch.at - c.batch.started).total_seconds(), 0.001) for c in read]
    speed = max(median(pace), _RECORDS_A_SECOND) if pace else _RECORDS_A_SECOND
    firings = tuple(sink.table for sink in amendment.flow.sinks if isinstance(sink, FiringSink))
    return Preview(
        covers=covers,
        ranges=ranges,
        batches=batches,
        windows=_windows_of(amendment, view, job),
        left=_left_of(amendment, view, job),
        unknown=tuple(sink.table for sink in amendment.windowed if _was_left_out(sink, view.position, covers)),
        seconds=batches * _A_BATCH + records / speed,
        late=late_of(amendment, ranges),
        rejected=count_rejected(amendment, ranges),
        asked=None if isinstance(wanted, OfWindows) else count(held.asked),
        replaying=held.replaying,
        firings=firings,
    )


def _job_of(amendment: AmendmentJob, view: View, held: _Held) -> Backfill:
    """The job that reads these ranges again.

    Raises:
        AmendmentError: it would change nothing, or read records of sessions that are forgotten.
    """
    covers = held.covers
    _check_sessions(amendment, view.position, covers)
    job = backfill_of(amendment.flow, view, amendment.ledger.past(), covers, held.ranges)
    job = job if held.replaying is None else held.replaying.of_job(job)
    if any(isinstance(sink, SingleSink) for sink in amendment.flow.sinks):
        superseded = superseded_batches(amendment, amendment.ledger.past())
        job = replace(job, supersedes=with_superseded(job.supersedes, superseded))
    left = sum(_left_of(amendment, view, job).values())
    if (
        left
        and len(amendment.windowed) == len(amendment.flow.sinks)
        and not any(_windows_of(amendment, view, job).values())
    ):
        until = show_moment(view.position.forgotten_until or 0)
        raise AmendmentError(
            f"{amendment.pipeline}: all {left} windows over these records end before {until}, so their state was "
            "removed, and they have records of other batches, too; nothing was moved",
            fix=f"name the windows, so that all of their batches are read: `tidemill backfill {amendment.pipeline} "
            "--windows FROM/TO`",
        )
    return replace(job, by=amendment.reason.by, why=amendment.reason.why)


def _check_sessions(amendment: AmendmentJob, position: Position, covers: Sequence[Cover]) -> None:
    """Refuse to read records again that may belong to forgotten sessions: nobody knows what else belonged to them."""
    for sink in (sink for sink in amendment.windowed if sink.merging):
        until = forgotten_sessions(sink, position)
        old = [c.batch_id for c in covers if sink.table in c.panes and c.panes[sink.table].first <= until]
        if old:
            raise AmendmentError(
                f"{amendment.pipeline}: batch {min(old)} read records of {show_moment(until)} or before; maintenance "
                f"has removed the state of sessions of {sink.table} that ended before; nothing was moved",
                fix=f"name offsets or times of later batches, or compute all again: `tidemill rebuild "
                f"{amendment.pipeline}`",
            )


def _windows_of(amendment: AmendmentJob, view: View, job: Backfill) -> Mapping[str, tuple[Window, ...]]:
    with_bounds = [sink for sink in amendment.windowed if sink.start is not None]
    refiring = {sink.table: Refiring.of(sink, job, view.position) for sink in with_bounds}
    last = {sink.table: sink.window.panes for sink in amendment.windowed}
    return {
        table: tuple(Window(low, last[table].last_ending_by(high).end) for low, high in each.ranges)
        for table, each in refiring.items()
    }


def _was_left_out(sink: WindowedSink, position: Position, covers: Sequence[Cover]) -> bool:
    """Whether some of the batches to read again did not publish the table: then its windows are not known."""
    since = (position.since or {}).get(sink.table)
    joined = since is not None and since.event_time is not None
    return joined and any(c.batches[0].from_batch < position.first_of_meaning(sink.table) for c in covers)


def _left_of(amendment: AmendmentJob, view: View, job: Backfill) -> Mapping[str, int]:
    found = {sink.table: left_of(sink, job, view.position) for sink in amendment.windowed}
    return {table: count for table, count in found.items() if count}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What is `asked` for, the batches that read it, and what is read again. `replaying` is about tables of firings."""

    asked: Ranges
    covers: tuple[Cover, ...]
    ranges: Ranges
    replaying: Replaying | None


def _held(amendment: AmendmentJob, view: View, wanted: Wanted, *, accept_loss: bool) -> _Held:
    asked, covers = wanted_covers(amendment, view, wanted)
    log = held_of(amendment.project.log(), [source.topic for source in amendment.flow.inputs])
    replaying = Replaying.of(amendment, view, covers)
    if replaying is not None:
        covers, ranges = replaying.covers, replaying.held(amendment.pipeline, log)
    else:
        covers, ranges = still_held(amendment.pipeline, covers, log, accept_loss=accept_loss)
    if not ranges:
        raise AmendmentError(
            f"{amendment.pipeline}: the log holds nothing of what is wanted", fix="choose a later start"
        )
    check_log(amendment.pipeline, amendment.project.log(), view, ranges, fix="choose offsets without it")
    amendment.watcher.widened(asked, ranges, batches_of(covers))
    return _Held(asked=asked, covers=covers, ranges=ranges, replaying=replaying)
