"""What a form can be filled with: what waits for a person, which offsets were read, which batches committed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidemill.core.errors import Incompatible
from tidemill.core.protocol.events import Committed
from tidemill.core.time.times import show_moment
from tidemill.inspect.open_batch import blocked_lines
from tidemill.inspect.status import status_of

if TYPE_CHECKING:
    from tidemill.ledger.ledger import Ledger
    from tidemill.project.project import Project

_RECENT_EVENTS = 200
"""How far back `committed_lines` looks for batches."""


def waiting_lines(project: Project, pipeline: str) -> Iterator[str]:
    """Everything about a pipeline that waits for a person: a blocked batch, a changed declaration, lost partitions.

    Raises:
        DeclarationError: the pipeline does not exist.
        LedgerDamaged: its ledger cannot be read.
    """
    found = status_of(project, pipeline)
    if found.view.open_batch is not None and found.view.open_batch.is_blocked:
        yield from blocked_lines(found.view.open_batch)
    rebuild = found.rebuild
    if rebuild is not None and rebuild.is_blocked and rebuild.view is not None and rebuild.view.open_batch is not None:
        yield f"a rebuild, generation {rebuild.number}, waits:"
        yield from blocked_lines(rebuild.view.open_batch)
    if isinstance(found.refused, Incompatible):
        yield str(found.refused)
    missing = [f"{p.topic}-{p.held.topic_partition.partition}" for p in found.partitions if p.missing and not p.gone]
    if missing:
        yield f"missing in the log, though they were read before: {', '.join(missing)}"


def offset_lines(project: Project, pipeline: str) -> Iterator[str]:
    """How far each partition was read, and what the log holds of it."""
    for each in status_of(project, pipeline).partitions:
        place = each.held.topic_partition
        if each.committed is None:
            yield f"{place}: not read yet; the log holds {each.held}"
            continue
        newest = "" if each.max_event_time is None else f", newest event {show_moment(each.max_event_time)}"
        yield f"{place}: read up to offset {each.committed}{newest}; the log holds {each.held}"


def committed_lines(ledger: Ledger, most: int = 10) -> Iterator[str]:
    """The newest batches that committed, newest first; or that there is none."""
    events = [entry.event for entry in ledger.entries(last=_RECENT_EVENTS)]
    commits = [event for event in events if isinstance(event, Committed)]
    if not commits:
        yield "no batch has committed yet"
    for commit in commits[: -most - 1 : -1]:
        rows = ", ".join(f"{count:,} rows to {table}" for table, count in commit.published.items())
        yield f"batch {commit.batch_id}, {commit.kind.value}, {commit.at:%Y-%m-%d %H:%M:%S}: {rows or 'no rows'}"
