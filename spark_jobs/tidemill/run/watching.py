"""Tells whoever executes a batch how far it is, and measures how long each of its steps takes.

The steps, in order: `claim`, `aggregate` (the records are read, decoded and aggregated in one pass), `stage`, `audit`,
`publish`, `commit`. `spark` is a step inside the one that needs Spark first. A step that did not happen is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from tidemill.core.contract.verdict import Verdict
from tidemill.core.plan.amendments import Ranges
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange


class Watcher:
    """Is told what happens to batches, in the thread that executes them. A subclass overrides what it wants to know.

    What it raises fails the batch.
    """

    def widened(self, wanted: Ranges, reads: Ranges, batches: tuple[BatchRange, ...]) -> None:
        """A backfill is about to be planned: it reads all offsets that `batches` have read, to compute the wanted ones.

        Called before anything is written, also if the two are equal.
        """

    def claimed(self, plan: BatchPlan, attempt: int) -> None:
        """The batch of this plan is claimed: its work begins."""

    def audited(self, batch_id: int, verdict: Verdict) -> None:
        """The batch was audited, and its audit does not hold it back."""

    def step_done(self, batch_id: int | None, step: str, seconds: float) -> None:
        """A step has ended; `batch_id` is None while no batch is claimed."""

    def step_failed(self, batch_id: int | None, step: str, seconds: float) -> None:
        """A step has raised an error, which ends the attempt."""


@dataclass(kw_only=True)
class Stopwatch:
    """Measures the steps of one attempt. The time of a step within another one counts only for the inner step."""

    watcher: Watcher = field(default_factory=Watcher)
    batch_id: int | None = None
    _seconds: dict[str, float] = field(default_factory=dict, init=False)
    _inner: list[float] = field(default_factory=list, init=False)

    @property
    def seconds(self) -> Mapping[str, float]:
        """How long each step took so far, in seconds to the millisecond."""
        return {step: round(seconds, 3) for step, seconds in self._seconds.items()}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure a step, and tell the watcher when it ends."""
        began = monotonic()
        self._inner.append(0.0)
        tell = self.watcher.step_failed
        try:
            yield
            tell = self.watcher.step_done
        finally:
            whole = monotonic() - began
            own = whole - self._inner.pop()
            if self._inner:
                self._inner[-1] += whole
            self._seconds[name] = self._seconds.get(name, 0.0) + own
            tell(self.batch_id, name, own)
