"""What an open batch waits for, for people."""

from __future__ import annotations

from tidemill.core.protocol.events import Decided, Decision, told
from tidemill.core.protocol.view import OpenBatch
from tidemill.inspect.status import holder_state


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
