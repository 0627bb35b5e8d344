"""Back to what a pipeline was after one of its batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from tidemill.amend.errand import Errand
from tidemill.core.amending import plan_rewind
from tidemill.core.amendments import Rewind
from tidemill.core.coverage import of_generation
from tidemill.core.errors import AmendmentError, OffsetsLost
from tidemill.core.events import Committed
from tidemill.core.plan import BatchPlan, Kind
from tidemill.core.position import Position
from tidemill.core.view import View
from tidemill.engine.places import Uris
from tidemill.tables.handles import newest
from tidemill.tables.keeping import KeptTable
from tidemill.tables.protocol import TableSpec


def rewind(errand: Errand, to: int) -> Iterator[Committed]:
    """The batch after which offsets, watermark, state and tables are what they were after batch `to`.

    What the open batch may be is completed first, and is taken back with the others.

    Raises:
        AmendmentError: there was no such commit, or it is the last one.
        OffsetsLost: the log no longer holds what would have to be read again.
        EngineError: a table no longer has the version of then.
    """

    def plan(view: View) -> BatchPlan:
        commits = of_generation([e.event for e in errand.ledger.entries() if isinstance(e.event, Committed)])
        position = _position(errand, view, to, commits)
        _check_log(errand, position)
        versions = _versions(commits, to)
        for spec in tables_of(errand):
            if newest(spec, None) is not None and (version := versions.get(spec.name)) is not None:
                KeptTable(spec).check_back(version)
        then = Rewind(position=position, versions=versions, reason=errand.reason)
        return plan_rewind(errand.flow, view, then, clock=datetime.now(UTC))

    while (commit := errand.execute(plan)) is not None:
        yield commit
        if commit.kind is Kind.REWIND:
            return


def tables_of(errand: Errand) -> tuple[TableSpec, ...]:
    """The tables that a rewind takes back."""
    uris = Uris(pipeline=errand.pipeline, table=errand.project.table_uri, published=errand.project.published_uri)
    return (*(uris.published_table(s) for s in errand.flow.sinks), uris.quarantine(), uris.late())


def _position(errand: Errand, view: View, to: int, commits: Sequence[Committed]) -> Position:
    if to == 0 and commits and commits[0].kind is not Kind.SWITCH:
        return Position()
    found = [c for c in commits if c.batch_id == to]
    if not found:
        known = f"batches {commits[0].batch_id} to {commits[-1].batch_id} have" if commits else "no batch has"
        raise AmendmentError(
            f"{errand.pipeline}: batch {to} has not committed; {known}", fix="`tidemill history` shows all"
        )
    if to == view.position.batch_id:
        raise AmendmentError(f"{errand.pipeline}: batch {to} is the last that committed: there is nothing to take back")
    return found[0].position


def _versions(commits: Sequence[Committed], to: int) -> dict[str, int | None]:
    versions: dict[str, int | None] = {}
    for commit in commits:
        if commit.batch_id <= to:
            versions |= commit.tables
    return versions


def _check_log(errand: Errand, position: Position) -> None:
    log = errand.project.log()
    for topic, then in position.topics.items():
        held = log.bounds(topic)
        for partition, offset in then.offsets.items():
            if offset < (start := held[partition].from_offset):
                raise OffsetsLost(
                    f"{errand.pipeline}: {topic}-{partition}: offsets {offset} to {start - 1} are gone, and would "
                    "have to be read again; nothing was moved",
                    fix="rewind less far",
                )
