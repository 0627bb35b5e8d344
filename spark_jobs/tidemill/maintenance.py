"""What keeps a pipeline small for years: beyond the upkeep of batches, it takes out what nobody can go back to.

A *horizon* says how far back one may want to go: commits younger than `keep` can be rewound to, and their versions of
published tables can be read. State that was superseded before the horizon, files that no such version needs, and rows
that waited for a backfill are removed. It may run beside batches at any time, and be killed at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemill.core.amendments import Rewind
from tidemill.core.coverage import of_generation
from tidemill.core.events import Committed
from tidemill.core.failpoints import boundary
from tidemill.core.flow import Flow, RowSink, WindowedSink
from tidemill.core.plan import Kind
from tidemill.core.position import Position
from tidemill.core.slices import BatchRange, in_both
from tidemill.engine.places import Uris
from tidemill.engine.state import State, state_horizon
from tidemill.ledger.ledger import Ledger
from tidemill.project import Project
from tidemill.tables.handles import newest
from tidemill.tables.keeping import KeptTable
from tidemill.tables.protocol import TableSpec, Transaction
from tidemill.upkeep import foldable, tidy_now

READERS = timedelta(hours=1)
"""How long a file that no version needs stays for readers that have opened the table before."""

AT_LEAST = 10
"""So many of the newest commits can be rewound to, however old they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """Something done, or to be done, to one table: `count` files or rows."""

    table: str
    what: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What can be gone back to: commits from the horizon on, oldest first, and what an open rewind goes back to.

    `own` are all commits of the ledger, those before a switch included: they wrote the tables that are its own.
    """

    commits: Sequence[Committed]
    generation: Sequence[Committed]
    own: Sequence[Committed]
    rewind: Rewind | None

    @staticmethod
    def of(ledger: Ledger, horizon: datetime) -> _Kept | None:
        """None before the first commit."""
        own = [e.event for e in ledger.entries() if isinstance(e.event, Committed)]
        generation = of_generation(own)
        young = [c for c in generation if c.at >= horizon]
        opened = ledger.view().open_batch
        kept = _Kept(
            commits=young if len(young) >= AT_LEAST else generation[-AT_LEAST:],
            generation=generation,
            own=own,
            rewind=opened.plan.rewind if opened is not None else None,
        )
        return kept if own else None

    @property
    def horizon(self) -> int:
        """The earliest batch that can be gone back to."""
        return self.commits[0].batch_id

    @property
    def positions(self) -> Sequence[Position]:
        """Where one may stand again."""
        return [c.position for c in self.commits] + ([self.rewind.position] if self.rewind is not None else [])

    @property
    def dead(self) -> Sequence[BatchRange]:
        """The batches whose slices none of these positions shows, nor shows again once its backfill is complete."""
        first, *others = self.positions
        found = _hidden(first)
        for position in others:
            later = BatchRange(position.slices.through + 1, self.own[-1].batch_id + 2)
            found = in_both(found, (*_hidden(position), later))
        return found

    @property
    def waited(self) -> Sequence[BatchRange]:
        """The batches whose rows wait for no backfill any more that is open in one of these positions."""
        since = [p.backfill.since for p in self.positions if p.backfill is not None]
        until = min(since, default=self.own[-1].batch_id + 1)
        return [BatchRange(1, until)] if until > 1 else []

    def versions(self, spec: TableSpec, *, published: bool) -> list[int]:
        """The versions that these commits left, and the one that stood when the first of them committed."""
        commits = self.generation if published else self.own
        left = [(c.batch_id, c.tables[spec.name]) for c in commits if spec.name in c.tables]
        older = [version for batch, version in left if batch <= self.horizon]
        then = None if self.rewind is None else self.rewind.versions.get(spec.name)
        wanted = {*older[-1:], *(version for batch, version in left if batch >= self.horizon)}
        return sorted(wanted | ({then} if then is not None else set()))


def _hidden(position: Position) -> tuple[BatchRange, ...]:
    job = position.backfill
    return position.slices.show(job.slices if job is not None else {}).hidden


def maintain(
    project: Project, pipeline: str, *, keep: timedelta, now: datetime, dry_run: bool = False
) -> Iterator[Chore]:
    """Everything that can be made smaller, done as it is told; only told in a dry run.

    Raises:
        TidemillError: a table or the ledger cannot be read or written; what was done before stays.
    """
    flow, ledger = project.pipeline(pipeline), project.ledger(pipeline)
    uris = project.uris(pipeline)
    kept = _Kept.of(ledger, now - keep)
    if kept is None:
        return
    newest_commit = kept.own[-1]
    for name, files in foldable(flow, uris, newest_commit):
        yield Chore(table=name, what="small files folded", count=files)
    # First, so that what is folded now stays until the next time for those who read it.
    swept = ledger.sweep(READERS, dry_run=dry_run)
    yield Chore(table=f"ledger of {pipeline}", what="files removed that were folded", count=swept)
    if not dry_run:
        with boundary("maintenance", newest_commit.batch_id):
            tidy_now(flow, uris, ledger, newest_commit)
    for sink in flow.sinks:
        if isinstance(sink, WindowedSink) and (state := State.of(uris, sink)):
            horizon = Transaction(state_horizon(pipeline, sink), kept.horizon)
            rows = KeptTable(state.spec, opened=state.handle).drop(kept.dead, horizon=horizon, dry_run=dry_run)
            yield Chore(table=state.spec.name, what="rows of superseded slices removed", count=rows)
            yield _vacuumed(state.spec, READERS, [], dry_run=dry_run)
    yield from _waited(flow, uris, kept, dry_run=dry_run)
    yield from _readable(flow, uris, kept, max(keep, READERS), dry_run=dry_run)
    yield from _outdated(project, pipeline, kept, now - keep, dry_run=dry_run)


def _readable(flow: Flow, uris: Uris, kept: _Kept, readers: timedelta, *, dry_run: bool) -> Iterator[Chore]:
    """Files of the tables that people read."""
    published = [(uris.published_table(s), True) for s in flow.sinks]
    own = [(spec, False) for spec in (uris.quarantine(), uris.late(), uris.corrections())]
    for spec, is_published in (*published, *own):
        if newest(spec) is not None:
            yield _vacuumed(spec, readers, kept.versions(spec, published=is_published), dry_run=dry_run)


def _waited(flow: Flow, uris: Uris, kept: _Kept, *, dry_run: bool) -> Iterator[Chore]:
    """What waited for backfills that are complete or given up."""
    rows = [uris.published_table(sink) for sink in flow.sinks if isinstance(sink, RowSink)]
    for spec in (uris.waiting(spec) for spec in (*rows, uris.quarantine())):
        if newest(spec) is not None:
            gone = KeptTable(spec).drop(kept.waited, dry_run=dry_run)
            yield Chore(table=spec.name, what="rows of finished backfills removed", count=gone)
            yield _vacuumed(spec, READERS, [], dry_run=dry_run)


def _outdated(project: Project, pipeline: str, kept: _Kept, horizon: datetime, *, dry_run: bool) -> Iterator[Chore]:
    """Generations that another one replaced before the horizon: nobody can go back to them."""
    switched = [c for c in kept.generation if c.kind is Kind.SWITCH]
    if switched and switched[-1].at < horizon:
        folders = project.generations.outdated(pipeline)
        yield Chore(
            table=f"generations of {pipeline}", what="folders of replaced generations removed", count=len(folders)
        )
        for folder in () if dry_run else folders:
            project.generations.remove(folder)


def _vacuumed(spec: TableSpec, readers: timedelta, versions: Sequence[int], *, dry_run: bool) -> Chore:
    files = KeptTable(spec).vacuum(readers, keep_versions=versions, dry_run=dry_run)
    return Chore(table=spec.name, what="files removed that no version needs", count=files)
