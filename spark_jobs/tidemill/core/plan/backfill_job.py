"""Jobs that take several batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.replay import Replay
from tidemill.core.plan.slices import BatchRange
from tidemill.core.time.spans import PaneSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """A job of one or several batches that read offsets again; its results are hidden until its last batch.

    `since` is its first batch. `left` are the offsets still to read, by topic. `supersedes` are the batches that read
    these offsets before. `panes` says where their state and the job's state lies, by published table. `slices` has the
    attempt of each batch of the job so far. `whole` says by table where the forgotten windows start that the job
    replaces; None when no window was forgotten. `completes` are the tables for which it reads all records that earlier
    batches left out. `replay` says how tables of firings are computed; None if there are none. A job with it has one
    batch.
    """

    since: int
    left: Mapping[str, tuple[OffsetRange, ...]]
    supersedes: tuple[BatchRange, ...]
    slices: Mapping[int, int] = field(default_factory=dict)
    panes: Mapping[str, tuple[PaneSpan, ...]] = field(default_factory=dict)
    by: str
    why: str = ""
    whole: Mapping[str, tuple[PaneSpan, ...]] | None = None
    completes: tuple[str, ...] | None = None
    replay: Replay | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to read."""
        return not any(r for ranges in self.left.values() for r in ranges)

    @property
    def publishes(self) -> bool:
        """Whether it is complete and was not given up."""
        return self.complete and bool(self.supersedes)

    def after(self, batch_id: int, attempt: int, panes: Mapping[str, PaneSpan]) -> Backfill:
        """The job after one more of its batches, which left state in `panes`."""
        spans = {t: (*self.panes.get(t, ()), *((panes[t],) if t in panes else ())) for t in (*self.panes, *panes)}
        return replace(self, slices={**self.slices, batch_id: attempt}, panes=spans)
