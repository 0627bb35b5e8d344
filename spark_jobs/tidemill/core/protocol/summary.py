"""A committed batch as JSON values, which commands print and the demonstration shows."""

from __future__ import annotations

from tidemill.core.contract.reasons import tally_reasons
from tidemill.core.counts import many
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.events import Committed
from tidemill.core.time.missed import Missed
from tidemill.core.time.times import moment
from tidemill.core.time.watermarks import BEGINNING, END

ACCOUNT = ("read", "aggregated", "filtered", "rejected", "late", "shed")
"""The parts of an account in display order."""


def account_of(commit: Committed) -> Account:
    """The account of a batch over all its inputs."""
    return sum(commit.accounts.values(), Account())


def watermark_json(watermark: int) -> str | None:
    """A watermark in ISO 8601; "end" when the input has ended and every window closed; None before the first event."""
    if watermark == BEGINNING:
        return None
    return "end" if watermark == END else moment(watermark).isoformat()


def broken_rules(commit: Committed) -> tuple[str, ...]:
    """The rules that were broken in a batch that committed: rules of tables, then warnings of records with counts."""
    warned = (
        f"warning {topic}: {rule}: {many(count, 'record')}"
        for topic, rules in (commit.warned or {}).items()
        for rule, count in rules.items()
    )
    return (*(commit.broken or ()), *warned)


def warned_json(commit: Committed) -> dict[str, dict[str, int]]:
    """How many records broke each rule of severity warning, by input topic and rule."""
    return {topic: dict(rules) for topic, rules in (commit.warned or {}).items()}


def seconds_of(commit: Committed) -> float:
    """How long the attempt took that committed, to the millisecond."""
    return round((commit.at - commit.started).total_seconds(), 3)


def steps_text(commit: Committed) -> str:
    """The steps of the attempt with their seconds, in order; empty for a commit of an older version."""
    return ", ".join(f"{step} {seconds:.2f} s" for step, seconds in (commit.steps or {}).items())


def _missed_json(span: Missed) -> list[object]:
    return [moment(span.first).isoformat(), moment(span.last).isoformat(), span.records]


def commit_json(commit: Committed) -> dict[str, object]:
    """A commit as JSON values; `seconds` is the duration of the attempt that committed, `steps` that of its steps."""
    account = account_of(commit)
    return {
        "event": "committed",
        "kind": commit.kind.value,
        "batch_id": commit.batch_id,
        "attempt": commit.attempt,
        **{part: getattr(account, part) for part in ACCOUNT},
        "watermark": watermark_json(commit.position.watermark),
        "table_watermarks": {table: watermark_json(at) for table, at in (commit.position.lagging or {}).items()},
        "published": dict(commit.published),
        "versions": dict(commit.tables),
        "reasons": dict(tally_reasons(commit.reasons.items())),
        "refused_windows": commit.refused_windows,
        "missed": {table: [_missed_json(span) for span in each] for table, each in (commit.missed or {}).items()},
        "skipped": commit.skipped,
        "incomplete": {
            table: [moment(span.first).isoformat(), moment(span.last).isoformat()]
            for table, span in (commit.incomplete or {}).items()
        },
        "broken": list(commit.broken or ()),
        "warned": warned_json(commit),
        "forgotten_until": None if (until := commit.position.forgotten_until) is None else moment(until).isoformat(),
        "seconds": seconds_of(commit),
        "steps": dict(commit.steps or {}),
    }
