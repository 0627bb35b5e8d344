"""A published table of firings: each result of an ordered window is a row of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import Field
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.graph import Step
from tidemill.core.declare.operators import Filter, Select, WithColumns
from tidemill.core.identity.declarations import encoded, written
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.policies import DeltaPolicy, PunctuationPolicy, TimePolicy
from tidemill.core.time.panes import EvenPanes, OnePane, Panes

Buffer = TumblingBuffer | SlidingBuffer
"""The kinds of ordered windows that are declared as such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringSink:
    """A published table with a row for each firing of an ordered window. `paths` leads from each input to the windows.

    Rows are appended: a later firing does not replace them. Records of a key are taken in the order of their batches,
    and in the order of topic, partition and offset within one. If `topic` is set, its rows are also sent there. `start`
    and `end` name the columns of a window's bounds, where windows have some. `results` are steps over finished rows.
    """

    table: str
    contract: Contract
    keys: tuple[str, ...]
    window: Buffer
    aggregates: Mapping[str, Aggregate]
    paths: Mapping[str, tuple[tuple[Step, ...], ...]]
    topic: str | None = None
    start: str | None = None
    end: str | None = None
    results: tuple[Filter | WithColumns | Select, ...] = ()

    @property
    def row_key(self) -> tuple[str, ...]:
        """Always empty: rows are only appended, never updated."""
        return ()

    @property
    def allowed_lateness(self) -> timedelta:
        """How long after its end a window takes records."""
        return timedelta(0)

    @property
    def computed(self) -> tuple[Field, ...]:
        """The fields of its contract whose values come from records."""
        return self.contract.fields

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
        """The windows of event time that decide which records are late; one that never ends for other buffers."""
        match self.window:
            case TumblingBuffer(flush=TimePolicy(uses_clock=False) as time):
                return EvenPanes(size=time.micros, slide=time.micros, offset=0)
            case _:
                return OnePane()

    @property
    def uses_clock(self) -> bool:
        """Whether a window may fire because the clock of batches moves on."""
        return any(isinstance(each, TimePolicy) and each.uses_clock for each in policies_of(self.window))

    @property
    def attribute(self) -> str | None:
        """The column that a delta compares: a record without a value of it joins no window."""
        policies = [each for each in policies_of(self.window) if isinstance(each, DeltaPolicy)]
        return policies[0].attribute if policies else None

    @property
    def marker(self) -> str | None:
        """The column that is true for records that are no data, but end a window."""
        policies = [each for each in policies_of(self.window) if isinstance(each, PunctuationPolicy)]
        return policies[0].marker if policies else None

    @property
    def shape(self) -> Mapping[str, str]:
        """What decides how a key goes on, one text for each part; state of another shape cannot be continued."""
        aggregates = {f"aggregate {name}": encoded(aggregate) for name, aggregate in self.aggregates.items()}
        parts = {"keys": list(self.keys), "window": encoded(self.window), **aggregates}
        return {name: written(part) for name, part in parts.items()}

    @property
    def legacy_shape(self) -> Mapping[str, str]:
        """Empty: older ledgers have no such tables."""
        return {}


def policies_of(window: Buffer) -> tuple[object, ...]:
    """The policies of a buffer."""
    return (window.flush,) if isinstance(window, TumblingBuffer) else (window.evict, window.trigger)
