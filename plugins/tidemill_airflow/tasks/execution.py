"""How one task executes several batches. This module does not import Airflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tidemill.core.errors import Busy, TidemillError
from tidemill.core.protocol.events import Claimed, Committed, Event, Planned


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a task committed, oldest first, and why it stopped."""

    commits: tuple[Committed, ...]
    ended: str

    def __str__(self) -> str:
        if not self.commits:
            return self.ended
        first, last = self.commits[0].batch_id, self.commits[-1].batch_id
        which = f"batch {first}" if first == last else f"batches {first} to {last}"
        return f"committed {which}; {self.ended}"


def execute_batches(
    next_batch: Callable[[], Committed | None], *, most: int, earlier: tuple[Committed, ...] = ()
) -> RunReport:
    """Execute batches until there is nothing to do, another run holds the open batch, or `most` have committed.

    `earlier` are the commits of previous tries of the same task. They count towards `most` and are part of the report.

    If an error needs a person but batches have committed before it, the run ends without raising: those commits are
    announced, and the next run meets the error first.

    Raises:
        TidemillError: any error of a batch except `Busy`. That another run works is not a failure of this one.
    """
    commits = list(earlier)
    while len(commits) < most:
        try:
            commit = next_batch()
        except Busy as busy:
            return RunReport(tuple(commits), f"busy: {busy}")
        except TidemillError as error:
            if error.retryable or not commits:
                raise
            return RunReport(tuple(commits), f"stopped: {type(error).__name__}: {error}")
        if commit is None:
            return RunReport(tuple(commits), "nothing to do")
        commits.append(commit)
    return RunReport(tuple(commits), f"the limit of this run is {most}")


def commits_of(events: Iterable[Event], identity: str) -> tuple[Committed, ...]:
    """The commits whose attempt `identity` claimed, in any try."""
    claims: set[tuple[int, int]] = set()
    found = []
    for event in events:
        match event:
            case Planned(plan=plan, executor=executor) if executor.identity == identity:
                claims.add((plan.batch_id, 1))
            case Claimed(batch_id=batch_id, attempt=attempt, executor=executor) if executor.identity == identity:
                claims.add((batch_id, attempt))
            case Committed(batch_id=batch_id, attempt=attempt) if (batch_id, attempt) in claims:
                found.append(event)
            case _:
                pass
    return tuple(found)
