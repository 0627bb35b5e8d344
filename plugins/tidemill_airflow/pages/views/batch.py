"""One batch, in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tidemill.core.contract.verdict import CheckResult
from tidemill.core.plan.slices import BatchRange
from tidemill.core.protocol.events import Audited, Committed, Event
from tidemill.inspect.recent_batches import BatchFacts, batches_of
from tidemill.ledger.rows import NAMES, Entry
from tidemill_airflow.pages.sight import Sight


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """An event of a batch: when, what, and by which attempt."""

    at: datetime
    what: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStory:
    """A batch with the results of its last audit, and its events in order. `reasons` counts rejected records."""

    facts: BatchFacts
    results: tuple[CheckResult, ...]
    events: tuple[Happened, ...]
    reasons: Mapping[str, int]


def story_of(sight: Sight, batch_id: int) -> BatchStory | None:
    """What the ledger has about a batch; None if it has nothing."""
    from tidemill.core.contract.reasons import tally_reasons

    entries = sight.ledger().of_batches(BatchRange(batch_id, batch_id + 1))
    facts = batches_of(entry.event for entry in entries).get(batch_id)
    if facts is None:
        return None
    audits = [e.event for e in entries if isinstance(e.event, Audited)]
    commits = [e.event for e in entries if isinstance(e.event, Committed)]
    return BatchStory(
        facts=facts,
        results=audits[-1].verdict.results if audits else (),
        events=tuple(_happened(entry) for entry in entries),
        reasons=tally_reasons(commits[-1].reasons.items()) if commits else {},
    )


def _happened(entry: Entry) -> Happened:
    return Happened(at=entry.recorded_at, what=NAMES[type(entry.event)], attempt=_attempt(entry.event))


def _attempt(event: Event) -> int:
    return getattr(event, "attempt", 1)


def in_order(results: Sequence[CheckResult]) -> list[CheckResult]:
    """Broken rules first, errors before warnings, then those that hold."""
    return sorted(results, key=lambda r: (r.passed, r.severity.value != "error"))
