"""What keeps a pipeline small for years: beyond the upkeep of batches, it takes out what nobody can go back to.

A *horizon* says how far back one may want to go: commits younger than `keep` can be rewound to, and their versions of
published tables can be read. State that was superseded before the horizon, files that no such version needs, and rows
that waited for a backfill are removed. It may run beside batches at any time, and be killed at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemill.core.coverage import of_generation
from tidemill.core.events import Committed
from tidemill.core.failpoints import boundary
from tidemill.core.flow import Flow, RowSink, WindowedSink
from tidemill.core.position import Position
from tidemill.core.slices import BatchRange
from tidemill.engine.places import Uris
from tidemill.engine.state import State
from tidemill.project import Project
from tidemill.tables.handles import newest
from tidemill.tables.keeping import KeptTable
from tidemill.tables.protocol import TableSpec
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


def maintain(
    project: Project, pipeline: str, *, keep: timedelta, now: datetime, dry_run: bool = False
) -> Iterator[Chore]:
    """Everything that can be made smaller, done as it is told; only told in a dry run.

    Raises:
        TidemillError: a table or the ledger cannot be read or written; what was done before stays.
    """
    flow, ledger = project.pipeline(pipeline), project.ledger(pipeline)
    uris = Uris(pipeline=pipeline, table=project.table_uri, published=project.published_uri)
    commits = of_generation([e.event for e in ledger.entries() if isinstance(e.event, Committed)])
    if not commits:
        return
    for name, files in foldable(flow, uris, commits[-1]):
        yield Chore(table=name, what="small files folded", count=files)
    if not dry_run:
        with boundary("maintenance", commits[-1].batch_id):
            tidy_now(flow, uris, ledger, commits[-1])
    within = _within(commits, now - keep)
    for sink in flow.sinks:
        if isinstance(sink, WindowedSink) and (state := State.of(uris, sink)):
            table = KeptTable(state.spec, opened=state.handle)
            rows = table.drop(_dead(within[0].position), dry_run=dry_run)
            yield Chore(table=state.spec.name, what="rows of superseded slices removed", count=rows)
            yield _vacuumed(state.spec, READERS, [], dry_run=dry_run)
    yield from _waited(flow, uris, commits[-1].position, dry_run=dry_run)
    readers = max(keep, READERS)
    for spec in (*(uris.published_table(s) for s in flow.sinks), uris.quarantine(), uris.late(), uris.corrections()):
        if newest(spec, None) is not None:
            yield _vacuumed(spec, readers, _versions(spec, commits, within[0].batch_id), dry_run=dry_run)


def _waited(flow: Flow, uris: Uris, position: Position, *, dry_run: bool) -> Iterator[Chore]:
    """What waited for backfills that are complete or given up."""
    rows = [uris.published_table(sink) for sink in flow.sinks if isinstance(sink, RowSink)]
    for spec in (uris.waiting(spec) for spec in (*rows, uris.quarantine())):
        if position.backfill is None and newest(spec, None) is not None:
            gone = KeptTable(spec).drop([BatchRange(1, position.batch_id + 1)], dry_run=dry_run)
            yield Chore(table=spec.name, what="rows of finished backfills removed", count=gone)
            yield _vacuumed(spec, READERS, [], dry_run=dry_run)


def _within(commits: Sequence[Committed], horizon: datetime) -> Sequence[Committed]:
    """The commits that can be gone back to, oldest first; at least one."""
    young = [c for c in commits if c.at >= horizon]
    return young if len(young) >= AT_LEAST else commits[-AT_LEAST:]


def _versions(spec: TableSpec, commits: Sequence[Committed], horizon: int) -> list[int]:
    """The versions that commits from batch `horizon` on left, and the one that stood when it committed."""
    left = [(c.batch_id, c.tables[spec.name]) for c in commits if spec.name in c.tables]
    older = [version for batch, version in left if batch <= horizon]
    return sorted({*older[-1:], *(version for batch, version in left if batch >= horizon)})


def _dead(position: Position) -> Sequence[BatchRange]:
    """The batches whose slices no position from this one on can show again."""
    job = position.backfill
    return position.slices.show(job.slices if job is not None else {}).hidden


def _vacuumed(spec: TableSpec, readers: timedelta, versions: Sequence[int], *, dry_run: bool) -> Chore:
    files = KeptTable(spec).vacuum(readers, keep_versions=versions, dry_run=dry_run)
    return Chore(table=spec.name, what="files removed that no version needs", count=files)
