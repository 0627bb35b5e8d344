"""A batch from plan to commit. The order of its steps is the order of this file.

    1. claim     the open batch, or a new plan, written to the ledger before any work starts
    2. read      the planned offsets, decoded, checked against their contracts, sent down the branches
    3. aggregate to one row of state per pane and key, appended as the slice of this attempt
    4. stage     the windows that fire, merged from visible slices and this one
    5. audit     the staged rows against their contracts; the verdict goes to the ledger
    6. publish   each table once, with the batch as its transaction; then rows that are sent to topics
    7. commit    offsets, watermark, account and state, in one row of the ledger

If an attempt dies between two steps, what it wrote does not count, and a newer attempt executes the same plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from tidemill.contracts.audit import audit
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import StatefulSink, WindowedSink
from tidemill.core.change.redefinition import meaning_after
from tidemill.core.contract.verdict import Verdict, blocked
from tidemill.core.errors import LogError
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.data_loss import incomplete
from tidemill.core.plan.position import Position, TableMark
from tidemill.core.protocol.codec import fingerprint
from tidemill.core.protocol.events import Audited, Committed
from tidemill.core.protocol.failpoints import boundary, check_wanted
from tidemill.core.protocol.view import View
from tidemill.engine.aggregate.partly_late import missed_of
from tidemill.engine.attempt import Attempt
from tidemill.engine.key_replay import Again
from tidemill.engine.publish.sink_rows import SinkRows
from tidemill.engine.spark.failures import explained
from tidemill.engine.spark.garbage import let_go
from tidemill.engine.spark.session import Spark
from tidemill.engine.steps import Aggregated, Published, Staged
from tidemill.engine.storage.table_layout import Uris
from tidemill.ledger.ledger import Ledger
from tidemill.log.interface import Log, TellsPosition, asked_once
from tidemill.log.pipeline_topics import check_sends, readable
from tidemill.log.reading import in_memory
from tidemill.project.project import Project
from tidemill.run.accounts import check_accounts
from tidemill.run.after_commit import tidy
from tidemill.run.blame import rules_named
from tidemill.run.claiming import Claim, Request, claim_batch
from tidemill.run.damage import check_tables, judged
from tidemill.run.histories import histories
from tidemill.run.looking import look_of
from tidemill.run.reading_again import read_again
from tidemill.run.sending import send
from tidemill.run.sessions import Opens, project_spark, renewing
from tidemill.run.sources import Sources, upstream_of
from tidemill.run.watching import Stopwatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """The log has no records after the committed offsets, and no window waits for the watermark."""


Outcome = Committed | NothingToDo

Send = Callable[[Sequence[SinkRows], Mapping[str, TableMark]], None]

_logger = logging.getLogger(__name__)


def run_batch(
    project: Project,
    name: str,
    request: Request,
    *,
    session: Opens | None = None,
    ledger: Ledger | None = None,
) -> Outcome:
    """Execute the open batch of a pipeline, or else the next one, completely.

    `session` is called only if there is work; without it, the project's settings say where Spark runs. A caller may
    keep `ledger` for many batches of one pipeline.

    Raises:
        TidemillError: the batch did not commit. What it wrote does not count, and the next run continues it.
    """
    log, book = asked_once(project.log()), ledger or project.ledger(name)
    flow = _checked(project, name, log)
    started = datetime.now(UTC)
    sources, uris = Sources(log, project.side_tables(name), upstream_of(project)), project.uris(name)
    timed = Stopwatch(watcher=request.watcher)
    spark = Spark.later(partial(_start, project, name, session, timed))
    request = replace(request, look=look_of(project, log, spark))
    accept = partial(_check_types, project, spark, flow, uris)
    with project.lease(name, flow.spec.takeover_after) as lease:
        with timed.step("claim"):
            claim = claim_batch(flow, book, sources, request, partial(check_tables, flow, uris), lease, accept)
        if claim is None:
            return NothingToDo()
        timed.batch_id = claim.plan.batch_id
        request.watcher.claimed(claim.plan, claim.attempt)
        flow = flow.reading(claim.plan.known_topics)
        where = f"{name}: batch {claim.plan.batch_id}"
        attempt = _attempt(project, flow, claim, spark, uris, book, read_again(sources, book, flow, claim))
        try:
            with judged(flow, uris, claim, book), rules_named(flow), explained(where):
                times = _Times(started, timed)
                commit = _execute(attempt, claim, book, times, send=partial(send, project, flow, claim.plan))
        finally:
            attempt.release()
            del attempt
            let_go()
    tidy(flow, uris, book, commit, before=claim.plan.position.batch_id)
    _tell_position(log, name, commit)
    return commit


def _start(project: Project, name: str, opens: Opens | None, timed: Stopwatch) -> Spark | SparkSession:
    """Start the Spark of a batch."""
    with timed.step("spark"):
        return opens() if opens else project_spark(project, name)


def _check_types(project: Project, spark: Spark, flow: Flow, uris: Uris, view: View) -> None:
    """Check the types of a new declaration before its first plan is written."""
    settings = project.settings
    last = view.last_commit
    if last is None or last.logical_hash != flow.logical_hash:
        with explained(f"{flow.name}: types of the declaration"):
            natively = settings.aggregate == "auto" and settings.driver_records > 0
            Attempt.check_types(spark, flow, uris, natively=natively)


def _attempt(  # noqa: PLR0913, PLR0917  all that an attempt needs
    project: Project, flow: Flow, claim: Claim, spark: Spark, uris: Uris, ledger: Ledger, again: Again | None
) -> Attempt:
    settings = project.settings
    return Attempt(
        flow=flow,
        plan=claim.plan,
        number=claim.attempt,
        scans=claim.scans,
        spark=spark,
        uris=uris,
        driver_rows=settings.driver_rows,
        driver_records=settings.driver_records,
        writer=settings.writer,
        aggregate_by=settings.aggregate,
        diverted=claim.diverted,
        given_up=claim.given_up,
        fetched=partial(in_memory, most=settings.driver_records),
        before_job=renewing(project, spark),
        histories=histories(ledger, flow, claim.plan),
        again=again,
    )


def _checked(project: Project, name: str, log: Log) -> Flow:
    """Return the pipeline after checking that it can read its topics and send its rows."""
    flow = project.pipeline(name)
    check_wanted(flow, lambda: readable(flow, log))
    check_sends(flow, log)
    return flow


def _tell_position(log: Log, pipeline: str, commit: Committed) -> None:
    """Publish the position for lag tools. A failure is only logged."""
    if isinstance(log, TellsPosition):
        topics = commit.position.topics.items()
        offsets = {TopicPartition(t, p): offset for t, at in topics for p, offset in at.offsets.items()}
        try:
            log.tell_position(pipeline, offsets)
        except LogError as error:
            _logger.warning("%s: lag tools were not told of batch %s: %s", pipeline, commit.batch_id, error.message)


@dataclass(frozen=True, slots=True)
class _Times:
    """When the attempt started, and how long its steps take."""

    started: datetime
    timed: Stopwatch


def _execute(attempt: Attempt, claim: Claim, ledger: Ledger, times: _Times, *, send: Send) -> Committed:
    plan, flow, step = claim.plan, attempt.flow, times.timed.step
    with step("aggregate"):
        found = attempt.aggregate(attempt.read())
    check_accounts(attempt, {topic: c.account for topic, c in found.counts.items()})
    position = plan.position_after(
        claim.attempt,
        dict(item for c in found.counts.values() for item in c.reached.items()),
        flow.delays,
        shapes={s.table: s.shape for s in flow.sinks if isinstance(s, StatefulSink)},
        panes=found.panes,
        merged=[s.table for s in flow.sinks if isinstance(s, WindowedSink) and s.merges_ahead],
        lags=flow.lags,
    )
    with step("stage"):
        staged = attempt.stage(found, position := meaning_after(flow, plan, position))
    with step("audit"):
        verdict = _audit(attempt, claim, found, staged, ledger)
    times.timed.watcher.audited(plan.batch_id, verdict)
    with step("publish"):
        published = attempt.publish(found, staged)
        send(published.rows, published.marks)
    position = staged.noted(replace(position, tables={**plan.position.tables, **published.marks}))
    commit = _commit_of(attempt, position, _Done(found, staged, verdict, published), times)
    with step("commit"), boundary("committed", plan.batch_id):
        ledger.append(lambda _: commit)
    return commit


@dataclass(frozen=True, slots=True)
class _Done:
    """The results of the steps before the commit."""

    found: Aggregated
    staged: Staged
    verdict: Verdict
    published: Published


def _commit_of(attempt: Attempt, position: Position, done: _Done, times: _Times) -> Committed:
    """Step 7: build the one event that makes the whole batch count."""
    plan, found = attempt.plan, done.found
    skipped = plan.live.skipped if plan.live is not None else None
    return Committed(
        batch_id=plan.batch_id,
        attempt=attempt.number,
        plan_hash=fingerprint(plan),
        position=position,
        kind=plan.kind,
        accounts={topic: c.account for topic, c in found.counts.items()},
        panes=found.panes,
        reasons=done.published.reasons,
        tables=done.published.versions,
        published={s.sink.table: s.count for s in done.staged.rows},
        refused_windows=sum(c.refused_windows for c in found.counts.values()) + done.staged.firings.lost,
        missed=missed_of(attempt.flow, plan, found.counts),
        skipped=sum(len(r) for r in skipped or ()),
        incomplete=incomplete(attempt.flow, plan, position) or None,
        broken=tuple(map(str, done.verdict.broken)) or None,
        warned={topic: c.warned for topic, c in found.counts.items() if c.warned} or None,
        logical_hash=plan.logical_hash,
        steps=times.timed.seconds,
        started=times.started,
        at=datetime.now(UTC),
    )


def _audit(attempt: Attempt, claim: Claim, found: Aggregated, staged: Staged, ledger: Ledger) -> Verdict:
    """Step 5: audit the staged rows. A verdict that an earlier attempt wrote is obeyed and not computed again."""
    plan = claim.plan
    if claim.audited is not None:
        verdict = claim.audited.verdict
    else:
        where, beside = attempt.writers.where, [(s, attempt.beside(found, s)) for s in staged.rows]
        results = [r for s, kept in beside for r in audit(s.sink.table, s.rows, kept.asked(), kept, where)]
        verdict = Verdict((*found.unfit, *staged.unfit, *results))
    event = Audited(
        batch_id=plan.batch_id,
        attempt=claim.attempt,
        verdict=verdict,
        logical_hash=plan.logical_hash,
        at=datetime.now(UTC),
    )
    with boundary("audited", plan.batch_id):
        ledger.append(lambda _: event)
    if verdict.blocks and not claim.accepted:
        raise blocked(attempt.flow.name, plan.batch_id, verdict)
    return verdict
