"""What a form can be filled with: what waits for a person, which offsets were read, which batches committed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidemill.core.errors import Incompatible
from tidemill.core.protocol.events import Committed, Decision
from tidemill.core.time.times import show_moment
from tidemill.inspect.lines import audit_lines, read_line
from tidemill.inspect.status import status_of

if TYPE_CHECKING:
    from tidemill.core.protocol.view import OpenBatch
    from tidemill.ledger.ledger import Ledger
    from tidemill.project.project import Project

CHOICES = {
    Decision.ACCEPT: "publish the batch as it is",
    Decision.DIVERT: "send all of its records to quarantine, and go on",
    Decision.RETRY: "audit it again, after the contract was mended",
}
"""What a person may decide about a blocked batch."""

_RECENT_EVENTS = 200
"""How far back `committed_lines` looks for batches."""


def blocked_lines(opened: OpenBatch) -> Iterator[str]:
    """What a blocked batch has read, what its audit found, and what can be decided."""
    if opened.audited is None:
        return
    yield read_line(opened.plan)
    yield from audit_lines(opened.audited.verdict.results)
    yield f"batch {opened.plan.batch_id} waits for a decision:"
    yield from (f"  {decision.value:<8}{what}" for decision, what in CHOICES.items())


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
    """The newest batches that committed, newest first."""
    events = [entry.event for entry in ledger.entries(last=_RECENT_EVENTS)]
    for commit in [event for event in events if isinstance(event, Committed)][: -most - 1 : -1]:
        rows = ", ".join(f"{count:,} rows to {table}" for table, count in commit.published.items())
        yield f"batch {commit.batch_id}, {commit.kind.value}, {commit.at:%Y-%m-%d %H:%M:%S}: {rows or 'no rows'}"
