"""A published table of firings: each result of an ordered window is a row of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from tidemill.core.bind.firing_columns import FiringColumns
from tidemill.core.bind.firing_times import looks_at_clock, panes_of, waits_for_watermark
from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import Field
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.graph import Step
from tidemill.core.declare.operators import Filter, Select, WithColumns
from tidemill.core.identity.declarations import encoded, written
from tidemill.core.ordered.accumulation import Accumulation
from tidemill.core.ordered.assigners import Sessions
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.evictors import DeltaEvictor
from tidemill.core.ordered.foldable import Ordered, policies_of, sorts
from tidemill.core.ordered.policies import DeltaPolicy, PunctuationPolicy
from tidemill.core.ordered.record_windows import RecordWindows
from tidemill.core.ordered.self_firing import SelfFiring
from tidemill.core.time.panes import OnePane, Panes
from tidemill.core.time.times import duration, micros
from tidemill.core.time.windows import WindowSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringSink:
    """A published table with a row for each firing of an ordered window. `paths` leads from each input to the windows.

    Rows are appended, and a later firing does not replace them unless the table `replaces`. Records of a key are taken
    in the order of their batches, and of topic, partition and offset within one, unless the window sorts them. If
    `topic` is set, its rows are also sent there. `start` and `end` name the columns of a window's bounds, where windows
    have some. `results` are steps over finished rows. `declared` is what was declared as window, `window` what is
    folded.
    """

    table: str
    contract: Contract
    keys: tuple[str, ...]
    declared: SelfFiring | WindowSpec
    window: Ordered
    aggregates: Mapping[str, Aggregate]
    paths: Mapping[str, tuple[tuple[Step, ...], ...]]
    topic: str | None = None
    start: str | None = None
    end: str | None = None
    told: FiringColumns = field(default_factory=FiringColumns)
    results: tuple[Filter | WithColumns | Select, ...] = ()

    @property
    def replaces(self) -> bool:
        """Whether a firing updates the row of the firing before, so that there is one row for each window and key."""
        return isinstance(self.window, EventWindows) and self.window.accumulation == Accumulation.REPLACING

    @property
    def retracts(self) -> bool:
        """Whether a firing takes the one before back, as a row that is computed again from its pieces."""
        return isinstance(self.window, EventWindows) and self.window.accumulation == Accumulation.RETRACTING

    @property
    def keeps_wholes(self) -> bool:
        """Whether pieces that have fired are needed only together from then on."""
        window = self.window
        if not isinstance(window, EventWindows) or window.evictor is not None:
            return False
        return window.accumulation != Accumulation.DISCARDING

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns that identify a row; empty where rows are only appended."""
        return (*self.bounds[:1], *self.keys) if self.replaces else ()

    @property
    def removes(self) -> bool:
        """Whether a firing may also remove rows: sessions that became part of others, and what a filter leaves out."""
        merges = isinstance(self.window, EventWindows) and isinstance(self.window.windows, Sessions)
        return self.replaces and (merges or any(isinstance(step, Filter) for step in self.results))

    @property
    def allowed_lateness(self) -> timedelta:
        """How long after its end a window takes records."""
        return duration(self.window.allowed_lateness) if isinstance(self.window, EventWindows) else timedelta(0)

    @property
    def computed(self) -> tuple[Field, ...]:
        """The fields of its contract whose values come from records."""
        return tuple(f for f in self.contract.fields if f.name not in self.told.types)

    @property
    def bounds(self) -> tuple[str, ...]:
        """The columns of a window's bounds, in order."""
        return tuple(column for column in (self.start, self.end) if column is not None)

    @property
    def direct(self) -> Mapping[str, Aggregate]:
        """The aggregates that are published as they are."""
        made = {name.lower() for step in self.results if isinstance(step, WithColumns) for name in step.columns}
        return {n: a for n, a in self.aggregates.items() if n.lower() not in made and n in self.contract.columns}

    @property
    def panes(self) -> Panes:
        """The windows of event time that decide which records are late; one that never ends where none is.

        Whether a record can be in no others is another question: `bounded`.
        """
        return panes_of(self.declared)

    @property
    def bounded(self) -> bool:
        """Whether event time says which windows a record may be in; of others, all earlier records of the key do."""
        return not sorts(self.window) and not isinstance(self.panes, OnePane)

    @property
    def ends_with_log(self) -> bool:
        """Whether the end of the log closes its windows; other buffers go on."""
        return isinstance(self.window, EventWindows | RecordWindows) or sorts(self.window)

    @property
    def waits_for_watermark(self) -> bool:
        """Whether no window fires before the watermark has passed its end."""
        return waits_for_watermark(self.window)

    @property
    def uses_clock(self) -> bool:
        """Whether a window may fire because the clock of batches moves on."""
        return looks_at_clock(self.window)

    @property
    def timeout(self) -> int | None:
        """After how many microseconds without records a key is forgotten; None if it never is."""
        return self.window.timeout if isinstance(self.window, TumblingBuffer | SlidingBuffer) else None

    @property
    def most_keys(self) -> int | None:
        """How many keys may keep something after a batch; None if there is no bound."""
        return self.window.most_keys if isinstance(self.window, TumblingBuffer | SlidingBuffer) else None

    @property
    def attribute(self) -> str | None:
        """The column that a delta compares: a record without a value of it joins no window."""
        found = [each for each in policies_of(self.window) if isinstance(each, DeltaPolicy | DeltaEvictor)]
        return found[0].attribute if found else None

    @property
    def marker(self) -> str | None:
        """The column that is true for records that are no data, but end a window."""
        policies = [each for each in policies_of(self.window) if isinstance(each, PunctuationPolicy)]
        return policies[0].marker if policies else None

    @property
    def shape(self) -> Mapping[str, str]:
        """What decides how a key goes on, one text for each part; state of another shape cannot be continued."""
        aggregates = {f"aggregate {name}": encoded(aggregate) for name, aggregate in self.aggregates.items()}
        declared = self.declared
        if isinstance(declared, TumblingBuffer | SlidingBuffer):
            declared = replace(declared, idle_timeout=None, most_keys=None)
        parts: dict[str, object] = {"keys": list(self.keys), "window": encoded(declared), **aggregates}
        if isinstance(self.window, EventWindows):
            evictor = self.window.evictor
            parts |= {"trigger": encoded(self.window.trigger), "accumulation": self.window.accumulation}
            parts |= {} if evictor is None else {"evictor": encoded(evictor)}
        return {name: written(part) for name, part in parts.items()}

    @property
    def timing(self) -> Mapping[str, object]:
        """What else decides when windows fire; keys can go on after a change of it, but earlier firings were others."""
        if not isinstance(self.window, EventWindows):
            forgets = {"idle timeout": self.timeout, "most keys": self.most_keys}
            return {name: value for name, value in forgets.items() if value is not None}
        lateness = micros(self.allowed_lateness)
        return {"allowed lateness": lateness, "fires on time without new records": self.window.empty_on_time}

    @property
    def text(self) -> str:
        """When its windows fire, for people."""
        fires = f", firing {self.window.trigger}" if isinstance(self.window, EventWindows) else ""
        return f"{self.declared}{fires}{', each updating the row of its window' if self.replaces else ''}"

    @property
    def legacy_shape(self) -> Mapping[str, str]:
        """Empty: older ledgers have no such tables."""
        return {}
