"""Where pipelines stand: the lines of the first page, and the head of a pipeline's page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from tidemill.core.errors import TidemillError
from tidemill.core.protocol.view import OpenBatch, View
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.inspect.recent_batches import BatchFacts
from tidemill.inspect.service_levels import Kept, MeasuredLevel, service_levels
from tidemill.inspect.status import PipelineStatus, holder_state, status_of
from tidemill_airflow.pages.sight import Sight


class Health(StrEnum):
    """What a pipeline needs, the most urgent first."""

    BLOCKED = "blocked"
    BROKEN = "broken"
    BEHIND = "missed"
    WORKING = "working"
    FRESH = "waiting"
    NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One pipeline at one moment. `words` say what its health means; `trouble` are faults, in full.

    `lag` is None if the log does not tell. `behind` is the time since the newest event that was read, `delay` that
    since the watermark, both in seconds.
    """

    name: str
    owner: str
    health: Health
    words: str
    trouble: tuple[str, ...] = ()
    lag: int | None = None
    view: View | None = None
    status: PipelineStatus | None = None
    levels: tuple[MeasuredLevel, ...] = ()
    behind: float | None = None
    delay: float | None = None

    @property
    def open_batch(self) -> OpenBatch | None:
        """The batch that is planned and not committed."""
        return None if self.view is None else self.view.open_batch


def standing_of(sight: Sight, batches: int = 1) -> tuple[Standing, Sequence[BatchFacts]]:
    """Where a pipeline stands, and its newest batches. What is wrong with it is shown, not raised."""
    owner = ""
    try:
        owner = sight.flow().spec.owner
        view, recent = sight.recent(batches)
        status = status_of(sight.project, sight.name, view)
    except TidemillError as error:
        found = Standing(name=sight.name, owner=owner, health=Health.BROKEN, words=_first(error), trouble=(str(error),))
        return found, ()
    now = datetime.now(UTC)
    levels = service_levels(status.flow, view, now)
    health, words = _health(status, levels)
    return Standing(
        name=sight.name,
        owner=owner,
        health=health,
        words=words,
        trouble=_trouble(status),
        lag=None if status.problem else status.lag,
        view=view,
        status=status,
        levels=levels,
        behind=_behind(view, now),
        delay=_delay(view, now),
    ), recent


def _health(status: PipelineStatus, levels: Sequence[MeasuredLevel]) -> tuple[Health, str]:
    opened = status.view.open_batch
    if opened is not None and opened.is_blocked:
        return Health.BLOCKED, f"batch {opened.plan.batch_id} is blocked by its audit: a person must decide"
    if status.rebuild is not None and status.rebuild.is_blocked:
        return Health.BLOCKED, f"the rebuild of generation {status.rebuild.number} is blocked by its audit"
    if status.refused is not None:
        return Health.BROKEN, f"the next batch is refused: {_first(status.refused)}"
    if status.problem:
        return Health.BROKEN, status.problem
    if any(p.lost or p.cut or (p.missing and p.gone is None) for p in status.partitions):
        return Health.BROKEN, "the log lacks records that the pipeline needs"
    missed = [str(level) for level in levels if level.kept is Kept.MISSED]
    if missed:
        return Health.BEHIND, missed[0]
    if opened is not None:
        return Health.WORKING, f"batch {opened.plan.batch_id} is {_held(opened)}"
    if status.view.last_commit is None:
        return Health.NEW, "no batch has committed yet"
    return Health.FRESH, "waits for its next run"


def _held(opened: OpenBatch) -> str:
    held = holder_state(opened)
    return "left behind: the next run takes it over" if held == "gone" else held


def _trouble(status: PipelineStatus) -> tuple[str, ...]:
    found = [str(status.refused)] if status.refused is not None else []
    return (*found, *([status.problem] if status.problem else []))


def _first(error: TidemillError) -> str:
    return error.message.splitlines()[0].rstrip(":")


def _behind(view: View, now: datetime) -> float | None:
    clocks = [c.max_event_time for c in view.position.clocks.values() if c.max_event_time is not None]
    return max((micros(now) - max(clocks)) / 1e6, 0) if clocks else None


def _delay(view: View, now: datetime) -> float | None:
    at = view.position.watermark
    return None if at in (BEGINNING, END) else max((micros(now) - at) / 1e6, 0)
