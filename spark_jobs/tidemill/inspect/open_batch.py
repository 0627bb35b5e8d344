"""What an open batch waits for, what a person may decide about it, and what was decided, for people."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.core.protocol.events import Decided, Decision, told
from tidemill.core.protocol.view import OpenBatch
from tidemill.inspect.lines import audit_lines, read_line
from tidemill.inspect.status import holder_state

CHOICES = {
    Decision.ACCEPT: "publish the batch as it is",
    Decision.DIVERT: "send all of its records to quarantine, and go on",
    Decision.RETRY: "audit it again, after the contract was mended",
}
"""What a person may decide about a blocked batch."""


def state_text(batch: OpenBatch) -> str:
    """What an open batch waits for: a decision, the next run, or the process that holds it."""
    if batch.is_blocked:
        return "blocked by its audit"
    if batch.decided is not None and batch.claimed_at <= batch.decided.at:
        return decision_text(batch.decided)
    held = holder_state(batch)
    return "its process is gone: the next run takes it over" if held == "gone" else held


def decision_text(decided: Decided) -> str:
    """What was decided about a blocked batch, by whom and why, and when it is done."""
    does = {
        Decision.ACCEPT: "publishes it as it is",
        Decision.DIVERT: "sends its records to quarantine",
        Decision.RETRY: "audits it again",
    }
    said = told(decided.by, decided.why)
    return f"was blocked by its audit; {decided.decision.value} by {said}; the next run {does[decided.decision]}"


def blocked_lines(opened: OpenBatch) -> Iterator[str]:
    """What a blocked batch has read, what its audit found, and what can be decided."""
    if opened.audited is None:
        return
    yield read_line(opened.plan)
    yield from audit_lines(opened.audited.verdict.results)
    yield f"batch {opened.plan.batch_id} waits for a decision:"
    yield from (f"  {decision.value:<8}{what}" for decision, what in CHOICES.items())
