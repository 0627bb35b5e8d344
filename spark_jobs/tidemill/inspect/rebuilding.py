"""What a rebuild would read, and where one stands that has begun."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidemill.inspect.status import status_of

if TYPE_CHECKING:
    from tidemill.project.project import Project


def rebuild_lines(project: Project, pipeline: str) -> Iterator[str]:
    """What `rebuild` would do now.

    Raises:
        DeclarationError: the pipeline does not exist.
        LedgerDamaged: its ledger cannot be read.
    """
    found = status_of(project, pipeline)
    tables = ", ".join(sink.table for sink in found.flow.sinks)
    held = [each.held for each in found.partitions if not each.missing]
    records = sum(len(each) for each in held)
    yield f"builds    {tables} again, beside generation {found.generation}, which stays until the switch"
    yield f"reads     {records:,} offsets: {', '.join(map(str, held)) or 'the log holds nothing'}"
    lost = [
        f"{each.held.topic_partition}: {each.held.from_offset:,} offsets are gone"
        for each in found.partitions
        if each.held.from_offset and not each.missing
    ]
    missing = [f"{each.held.topic_partition}: the log does not show it" for each in found.partitions if each.missing]
    if lost or missing:
        yield f"lacks     {'; '.join((*lost, *missing))}; it may be refused without `accept_loss`"
    if (begun := found.rebuild) is None:
        return
    state = "waits for a decision about its open batch" if begun.is_blocked else "is not complete"
    yield f"begun     generation {begun.number} {state}" + (
        "; another declaration began it, so another one is built" if begun.outdated else ""
    )
