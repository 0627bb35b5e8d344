"""Maintenance: beyond the upkeep after batches, it removes what nobody can go back to.

The *horizon* limits how far one can go back: a pipeline can be rewound to commits younger than `keep`, and the versions
of published tables from these commits stay readable. Maintenance removes state that was superseded before the horizon,
files that no such version needs, and rows of finished backfills. It also removes the state of windows that closed for
good longer ago than the project's `state`, whatever the horizon; the ledger records this before the rows go.
Maintenance can run beside batches and can be killed at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import StatefulSink, WindowedSink
from tidemill.core.history.index import IndexedBatch
from tidemill.core.history.past import Past
from tidemill.core.plan.amendments import Rewind
from tidemill.core.plan.position import Position
from tidemill.core.plan.slices import BatchRange, batch_ranges, in_both
from tidemill.core.plan.work import replay_of
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.protocol.view import OpenBatch
from tidemill.core.repair.state_retention import forgettable
from tidemill.core.time.pane_tree import forgotten
from tidemill.core.time.times import micros
from tidemill.core.time.windows import Global
from tidemill.engine.storage.state_table import State, state_horizon
from tidemill.engine.storage.table_layout import Uris
from tidemill.ledger.ledger import Ledger
from tidemill.maintain.forgetting import ForgottenState, forgotten_state
from tidemill.maintain.task import MaintenanceTask
from tidemill.project.project import Project
from tidemill.run.after_commit import foldable, tidy_now
from tidemill.tables.handles import newest
from tidemill.tables.interface import TableSpec, Transaction
from tidemill.tables.keeping import KeptTable
from tidemill.tables.trim import trim_unreadable

READERS = timedelta(hours=1)
"""How long unneeded files stay, for readers that opened the table before."""

AT_LEAST = 10
"""This many of the newest commits can always be rewound to, however old they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What one can go back to: the commits from the horizon on, oldest first, and the target of an open rewind.

    `past` describes all batches of the ledger; batches before a switch wrote only the generation's own tables.
    """

    commits: Sequence[Committed]
    past: Past
    rewind: Rewind | None
    opened: OpenBatch | None

    @staticmethod
    def of(ledger: Ledger, horizon: datetime) -> _Kept | None:
        """Read the ledger; None if it has no commit yet."""
        past, opened = ledger.past(), ledger.view().open_batch
        young = next((b for b in past.generation(lambda z: z.times[1] >= horizon) if b.at >= horizon), None)
        few = list(islice(past.backwards(), AT_LEAST))
        oldest = min([b for b in (young, *few) if b is not None and b.batch_id >= past.since], default=None, key=_id)
        if oldest is None:
            return None
        commits = [entry.event for entry in ledger.since(oldest.sequence, Committed)]
        return _Kept(
            commits=[c for c in commits if isinstance(c, Committed)],
            past=past,
            rewind=opened.plan.work if opened is not None and isinstance(opened.plan.work, Rewind) else None,
            opened=opened,
        )

    def unused(self, now: datetime) -> timedelta:
        """How long a file must be unused before it is deleted: longer than the open batch may have been writing it."""
        since = now if self.opened is None else min(self.opened.plan.clock, self.opened.claimed_at, now)
        return READERS + (now - since)

    @property
    def horizon(self) -> int:
        """The earliest batch that one can go back to."""
        return self.commits[0].batch_id

    @property
    def newest(self) -> Committed:
        """The last commit."""
        return self.commits[-1]

    @property
    def positions(self) -> Sequence[Position]:
        """All positions that one can go back to."""
        return [c.position for c in self.commits] + ([self.rewind.position] if self.rewind is not None else [])

    def dead(self, sink: StatefulSink) -> Sequence[BatchRange]:
        """The batches whose slices none of these positions shows, not even after its open backfill completes."""
        first, *others = self.positions
        found = _hidden(sink, first)
        for position in others:
            later = BatchRange(position.slices.through + 1, self.newest.batch_id + 2)
            found = in_both(found, (*_hidden(sink, position), later))
        return found

    @property
    def replays(self) -> bool:
        """Whether an open batch folds firings again, which begins with slices that may be superseded."""
        return self.opened is not None and replay_of(self.opened.plan.work) is not None

    def unmerged(self, sink: WindowedSink, there: Sequence[BatchRange]) -> Sequence[BatchRange]:
        """Of the batches in `there`, those whose merged panes no batch reads from any of these positions."""
        watermark = min(position.watermark_of(sink.table) for position in self.positions)
        edge = forgotten(sink.even_panes, watermark, micros(sink.allowed_lateness))
        return batch_ranges(
            [
                *self.dead(sink),
                *(b.batch_id for b in self.past.with_ids(there) if b.watermarks_of(sink.table)[1] <= edge),
            ]
        )

    @property
    def waited(self) -> Sequence[BatchRange]:
        """The batches whose waiting rows no backfill needs that is open in one of these positions."""
        since = [p.backfill.since for p in self.positions if p.backfill is not None]
        until = min(since, default=self.newest.batch_id + 1)
        return [BatchRange(1, until)] if until > 1 else []

    def versions(self, spec: TableSpec, *, published: bool) -> list[int]:
        """The versions that these commits left, and the version at the time of the first of them."""
        since = self.past.since if published else 1
        older = self.past.version(spec.name, since=since, through=self.horizon)
        then = None if self.rewind is None else self.rewind.versions.get(spec.name)
        younger = (c.tables[spec.name] for c in self.commits if spec.name in c.tables)
        return sorted({version for version in (older, then, *younger) if version is not None})


def _id(batch: IndexedBatch) -> int:
    return batch.batch_id


def _hidden(sink: StatefulSink, position: Position) -> tuple[BatchRange, ...]:
    job = position.backfill
    shown = position.slices.show(job.slices if job is not None else {})
    return (shown.since_batch(position.firings_from) if isinstance(sink, FiringSink) else shown).hidden


def goes_back_to(project: Project, pipeline: str, *, keep: timedelta, now: datetime) -> int | None:
    """Return the earliest batch that one can rewind to after `maintain`; None before the first commit.

    Everything needed for that rewind stays, however old it is.
    """
    kept = _Kept.of(project.ledger(pipeline), now - keep)
    return None if kept is None else kept.horizon


def maintain(
    project: Project, pipeline: str, *, keep: timedelta, now: datetime, dry_run: bool = False
) -> Iterator[MaintenanceTask]:
    """Do every maintenance task and yield it when done. A dry run only yields the tasks.

    Raises:
        TidemillError: a table or the ledger cannot be read or written. Tasks done before stay done.
    """
    flow, ledger = project.pipeline(pipeline), project.ledger(pipeline)
    uris = project.uris(pipeline)
    if not dry_run:
        # Otherwise the next steps would read all events of a ledger that was never indexed.
        ledger.index_old()
    kept = _Kept.of(ledger, now - keep)
    if kept is None:
        return
    newest_commit = kept.newest
    until_of = partial(forgettable, flow, others=kept.positions, age=project.settings.state)
    forgotten = forgotten_state(ledger, until_of, now, dry_run=dry_run)
    for name, files in foldable(flow, uris, newest_commit):
        yield MaintenanceTask(table=name, what="small files folded", count=files)
    # Sweep first, so that files folded now stay for their readers until the next maintenance.
    unused = kept.unused(now)
    swept = ledger.sweep(unused, dry_run=dry_run)
    yield MaintenanceTask(table=f"ledger of {pipeline}", what="files removed that were folded", count=swept)
    if not dry_run:
        with boundary("maintenance", newest_commit.batch_id):
            tidy_now(flow, uris, ledger, newest_commit)
    for sink in (sink for sink in flow.sinks if isinstance(sink, StatefulSink)):
        yield from _state(uris, sink, kept, forgotten, dry_run=dry_run)
        yield from _merged(uris, sink, kept, dry_run=dry_run)
        for spec in (s.spec for s in (State.of(uris, sink), State.merged(uris, sink)) if s is not None):
            yield _vacuumed(spec, unused, [], dry_run=dry_run)
    lease = None if kept.opened is None else kept.opened.lease
    if left := project.lease(pipeline, flow.spec.takeover_after).sweep(unused, keep=lease, dry_run=dry_run):
        yield MaintenanceTask(table=f"leases of {pipeline}", what="of runs that were killed removed", count=left)
    yield from _waited(flow, uris, kept, unused, dry_run=dry_run)
    yield from _readable(flow, uris, kept, now - max(keep, unused), now, dry_run=dry_run)
    yield from _outdated(project, pipeline, kept, now - keep, dry_run=dry_run)


def _state(
    uris: Uris, sink: StatefulSink, kept: _Kept, forgotten: ForgottenState | None, *, dry_run: bool
) -> Iterator[MaintenanceTask]:
    """Remove state of slices that no position shows any more, and state that was forgotten."""
    state = State.of(uris, sink)
    if isinstance(sink, FiringSink) and kept.replays:
        return
    if state is not None:
        horizon = Transaction(state_horizon(uris.owner, sink), kept.horizon)
        rows = KeptTable(state.spec, opened=state.handle).drop(kept.dead(sink), horizon=horizon, dry_run=dry_run)
        yield MaintenanceTask(table=state.spec.name, what="rows of superseded slices removed", count=rows)
        if forgotten is not None and isinstance(sink, WindowedSink) and not isinstance(sink.window, Global):
            yield forgotten.removed(uris, sink, state.spec, dry_run=dry_run)


def _merged(uris: Uris, sink: StatefulSink, kept: _Kept, *, dry_run: bool) -> Iterator[MaintenanceTask]:
    """Remove panes merged ahead that belong to superseded slices or only to windows that are closed for good."""
    if not isinstance(sink, WindowedSink) or not sink.merges_ahead:
        return
    state = State.merged(uris, sink)
    if state is not None:
        table = KeptTable(state.spec, opened=state.handle)
        there = batch_ranges(table.read(columns=("batch_id",))["batch_id"].unique().to_pylist())
        gone = table.drop(kept.unmerged(sink, there), dry_run=dry_run)
        yield MaintenanceTask(table=state.spec.name, what="rows removed that no window needs", count=gone)


def _readable(  # noqa: PLR0913  of what, and since when
    flow: Flow, uris: Uris, kept: _Kept, since: datetime, now: datetime, *, dry_run: bool
) -> Iterator[MaintenanceTask]:
    """Delete files and log entries that nobody needs who has opened a table `since` then, of tables that people read.

    Once its files are deleted, a version cannot be read: entries of the log that only lead to it are of no use.
    """
    published = [(uris.published_table(s), True) for s in flow.sinks]
    own = [(spec, False) for spec in (uris.quarantine(), uris.late(), uris.corrections())]
    for spec, is_published in (*published, *own):
        if newest(spec) is None:
            continue
        versions = kept.versions(spec, published=is_published)
        yield _vacuumed(spec, now - since, versions, dry_run=dry_run)
        if versions:
            count = trim_unreadable(spec, oldest=versions[0], opened=since, dry_run=dry_run)
            yield MaintenanceTask(table=spec.name, what="log entries removed that no version needs", count=count)


def _waited(flow: Flow, uris: Uris, kept: _Kept, unused: timedelta, *, dry_run: bool) -> Iterator[MaintenanceTask]:
    """Remove rows that waited for backfills which are now complete or given up."""
    rows = [uris.published_table(sink) for sink in flow.sinks if not isinstance(sink, WindowedSink)]
    for spec in (uris.waiting(spec) for spec in (*rows, uris.quarantine(), uris.late())):
        if newest(spec) is not None:
            gone = KeptTable(spec).drop(kept.waited, dry_run=dry_run)
            yield MaintenanceTask(table=spec.name, what="rows of finished backfills removed", count=gone)
            yield _vacuumed(spec, unused, [], dry_run=dry_run)


def _outdated(
    project: Project, pipeline: str, kept: _Kept, horizon: datetime, *, dry_run: bool
) -> Iterator[MaintenanceTask]:
    """Remove generations that were replaced before the horizon: nobody can go back to them."""
    switch = kept.past.switch
    if switch is not None and switch.at < horizon:
        folders, name = project.generations.outdated(pipeline), f"generations of {pipeline}"
        yield MaintenanceTask(table=name, what="folders of replaced generations removed", count=len(folders))
        for folder in () if dry_run else folders:
            project.generations.remove(folder)


def _vacuumed(spec: TableSpec, readers: timedelta, versions: Sequence[int], *, dry_run: bool) -> MaintenanceTask:
    files = KeptTable(spec).vacuum(readers, keep_versions=versions, dry_run=dry_run)
    return MaintenanceTask(table=spec.name, what="files removed that no version needs", count=files)
