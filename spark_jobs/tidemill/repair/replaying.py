"""Backfills of pipelines with tables of firings: one batch, from the first batch that it touches to the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.errors import OffsetsLost
from tidemill.core.history.coverage import Cover, batches_of, plans_of, still_held
from tidemill.core.history.lineage import Superseded, origins_of
from tidemill.core.history.past import Past
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.amendments import Ranges
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.position import Position
from tidemill.core.plan.replay import Replay
from tidemill.core.plan.slices import BatchRange, SliceSet, batch_ranges
from tidemill.core.plan.work import Kind, replay_of
from tidemill.core.protocol.events import Planned
from tidemill.core.protocol.view import View
from tidemill.core.repair.replaying import is_readable, replayed
from tidemill.engine.storage.state_table import horizon_of
from tidemill.engine.storage.table_layout import PANE_FIELDS
from tidemill.repair.job import AmendmentJob
from tidemill.run.histories import plan_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaying:
    """What a backfill folds again: from which batch on, and the batches whose slices hold it now.

    `idle` are the batches that only let time pass. `why` says why it begins with the first batch of all, although less
    was asked for; None if it does not.
    """

    replay: Replay
    covers: tuple[Cover, ...]
    idle: tuple[BatchRange, ...]
    why: str | None = None

    @staticmethod
    def of(amendment: AmendmentJob, view: View, touched: Sequence[Cover]) -> Replaying | None:
        """What a backfill of these batches folds again; None if the pipeline has no table of firings."""
        if not any(isinstance(sink, FiringSink) for sink in amendment.flow.sinks):
            return None
        past, position = amendment.ledger.past(), view.position
        superseded = superseded_batches(amendment, past)
        covers = past.covers(position.slices)
        found = replayed(touched, covers, lambda cover: origins_of(cover.batch, superseded))
        before = plan_of(amendment.ledger, found.since).position.slices_of_firings
        why = _not_from(amendment, position, before, found.since)
        if why is None:
            replay = Replay(since=found.since, before=before)
            return Replaying(replay=replay, covers=found.covers, idle=_idle(past, position, found.since))
        first = past.first.batch_id if past.first is not None else found.since
        return Replaying(
            replay=Replay(since=first, before=SliceSet()), covers=covers, idle=_idle(past, position, first), why=why
        )

    def held(self, pipeline: str, held: Mapping[str, Mapping[int, OffsetRange]]) -> Ranges:
        """What all of these batches have read, all of which the log must hold.

        Raises:
            OffsetsLost: it does not.
        """
        try:
            _, ranges = still_held(pipeline, self.covers, held, accept_loss=False)
        except OffsetsLost as error:
            reason = f"; all of the log is needed, because {self.why}" if self.why else ""
            raise OffsetsLost(
                f"{error.message}{reason}; firings follow from all records before them, so that none can be left out",
                fix=("" if self.why else "name later offsets or times; or ")
                + f"compute all from what is left of the log, with `tidemill rebuild {pipeline} --accept-loss`",
            ) from error
        return ranges

    def of_job(self, job: Backfill) -> Backfill:
        """The job that does it."""
        return replace(job, replay=self.replay, supersedes=batch_ranges([*batches_of(self.covers), *self.idle]))


def superseded_batches(amendment: AmendmentJob, past: Past) -> Superseded:
    """The batches that each backfill has superseded, and those whose firings a repair has computed again."""
    kinds = {Kind.BACKFILL, Kind.REPAIR}
    found = [b.batch_id for b in past.batches(lambda zone: not kinds.isdisjoint(zone.kinds)) if b.kind in kinds]
    superseded: dict[int, tuple[BatchRange, ...]] = {}
    for ids in batch_ranges(found):
        # Of a batch that was planned twice, the later plan counts.
        for plan in plans_of(entry.event for entry in amendment.ledger.of_batches(ids, Planned)):
            replay = replay_of(plan.work)
            again = () if replay is None else (BatchRange(replay.since, plan.batch_id),)
            superseded[plan.batch_id] = again if plan.job is None else plan.job.supersedes
    return {batch_id: batches for batch_id, batches in superseded.items() if batches}


def _idle(past: Past, position: Position, since: int) -> tuple[BatchRange, ...]:
    """The visible live batches from `since` on that read nothing: they may have let time pass."""
    found = (b for b in past.batches(lambda z: z.batches[1] >= since) if b.batch_id >= since and not b.reads)
    visible = position.slices
    return batch_ranges(b.batch_id for b in found if b.kind is Kind.LIVE and visible.attempt_of(b.batch_id))


def _not_from(amendment: AmendmentJob, now: Position, before: SliceSet, since: int) -> str | None:
    """Why keys cannot go on from what they kept in the slices `before` batch `since`; None if they can."""
    for sink in (sink for sink in amendment.flow.sinks if isinstance(sink, FiringSink)):
        first = amendment.ledger.past().first
        if sink.replaces and first is not None and since > first.batch_id:
            return f"rows of firings are updated in {sink.table}, and what they were before batch {since} is not kept"
        meant = now.first_of_meaning(sink.table)
        if since < meant and _kept_something(amendment, sink, before):
            return (
                f"{sink.table} means something else since batch {meant}, and what keys kept before batch {since} has "
                "the meaning of then"
            )
    if table := not_readable_before(amendment, now, before):
        return f"maintenance has removed what keys of {table} kept before batch {since}"
    return None


def not_readable_before(amendment: AmendmentJob, now: Position, before: SliceSet) -> str | None:
    """A table of firings of which maintenance has removed state in the slices `before`; None if there is none."""
    for sink in (sink for sink in amendment.flow.sinks if isinstance(sink, FiringSink)):
        if not is_readable(before, now.slices_of_firings, horizon_of(amendment.uris, sink)):
            return sink.table
    return None


def _kept_something(amendment: AmendmentJob, sink: FiringSink, before: SliceSet) -> bool:
    """Whether a batch that these slices show has written state of a table."""
    name = amendment.uris.state(sink, PANE_FIELDS).name
    batches = amendment.ledger.past().batches(lambda zone: zone.batches[0] <= before.through)
    return any(name in b.tables for b in batches if before.attempt_of(b.batch_id) == b.attempt)
