"""What pytest adds to the report of a failed test: what became of the records of its trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tidemill.core.protocol.summary import ACCOUNT, account_of, broken_rules

if TYPE_CHECKING:
    from tidemill.core.protocol.events import Committed
    from tidemill.testing.trial import Trial


def told(trials: Sequence[Trial]) -> str:
    """One line for each batch, each reason of rejections and each broken rule; empty if no batch committed."""
    return "\n".join(line for trial in trials for commit in trial.commits for line in _lines(trial.name, commit))


def _lines(pipeline: str, commit: Committed) -> Iterator[str]:
    account = account_of(commit)
    parts = " + ".join(f"{part} {count}" for part in ACCOUNT[1:] if (count := getattr(account, part)))
    published = ", ".join(f"{table} {count}" for table, count in commit.published.items() if count)
    read = f"read {account.read} = {parts or 0}"
    yield f"{pipeline}: batch {commit.batch_id}: {read}; published: {published or 'nothing'}"
    for reason, count in commit.reasons.items():
        yield f"  rejected {count}: {reason}"
    yield from (f"  {text}" for text in broken_rules(commit))
