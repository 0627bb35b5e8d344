"""What a pipeline publishes: tables of windows, and tables of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeGuard

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import Field
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.columns import WINDOW_COLUMNS
from tidemill.core.declare.graph import Step
from tidemill.core.declare.operators import Filter, Select, WithColumns
from tidemill.core.identity.declarations import encoded, written
from tidemill.core.identity.legacy import legacy_shape
from tidemill.core.time.calendar import CalendarPanes
from tidemill.core.time.pane_tree import levels_of
from tidemill.core.time.panes import EvenPanes, OnePane, Panes
from tidemill.core.time.sessions import SessionPanes
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.windows import Global, Session, WindowSpec

ResultStep = Filter | WithColumns | Select
"""What may be done to finished rows, before they are published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowedSink:
    """A published table of one row per window and key. `paths` leads from each input to the windows.

    If `topic` is set, its rows are also sent there. `start` and `end` name the columns of a window's bounds, `timing`
    the column that says why a row was published; a column that is None is not published. Aggregates without a window
    have one window, `Global`, which has no bounds: then there is one row per key. `results` are steps over finished
    rows, in order.
    """

    table: str
    contract: Contract
    keys: tuple[str, ...]
    window: WindowSpec
    allowed_lateness: timedelta
    aggregates: Mapping[str, Aggregate]
    trigger: Trigger
    paths: Mapping[str, tuple[tuple[Step, ...], ...]]
    topic: str | None = None
    start: str | None = WINDOW_COLUMNS[0]
    end: str | None = WINDOW_COLUMNS[1]
    timing: str | None = None
    results: tuple[ResultStep, ...] = ()

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns that identify a row of the table."""
        return (*self.bounds[:1], *self.keys)

    @property
    def computed(self) -> tuple[Field, ...]:
        """The fields of its contract whose values come from records: all but `timing`."""
        return tuple(f for f in self.contract.fields if f.name != self.timing)

    @property
    def chooses(self) -> bool:
        """Whether a finished row may be left out, because it does not meet a filter."""
        return any(isinstance(step, Filter) for step in self.results)

    @property
    def direct(self) -> Mapping[str, Aggregate]:
        """The aggregates that are published as they are."""
        made = {name.lower() for step in self.results if isinstance(step, WithColumns) for name in step.columns}
        return {n: a for n, a in self.aggregates.items() if n.lower() not in made and n in self.contract.columns}

    @property
    def bounds(self) -> tuple[str, ...]:
        """The columns of a window's bounds, in order."""
        return tuple(column for column in (self.start, self.end) if column is not None)

    @property
    def even_panes(self) -> EvenPanes:
        """The arithmetic of its windows, which have one size.

        Raises:
            TypeError: its windows have no single size.
        """
        panes = self.window.panes
        if not isinstance(panes, EvenPanes):
            raise TypeError(f"windows of {self.table} have no single size: {self.window}")
        return panes

    @property
    def session_panes(self) -> SessionPanes:
        """The arithmetic of its sessions.

        Raises:
            TypeError: its windows are no sessions.
        """
        panes = self.window.panes
        if not isinstance(panes, SessionPanes):
            raise TypeError(f"{self.table} has no sessions: {self.window}")
        return panes

    @property
    def panes(self) -> Panes:
        """The arithmetic of its windows."""
        return self.window.panes

    @property
    def pane_columns(self) -> tuple[str, ...]:
        """The columns of state that say where a pane lies; its end is stored where it does not follow from its start.

        The rules of time zones change: windows that exist keep the end that they had.
        """
        ends = ("pane_end",) if isinstance(self.window.panes, CalendarPanes | SessionPanes) else ()
        return ("pane_day", "pane_start", *ends)

    @property
    def merging(self) -> bool:
        """Whether records decide which windows there are, so that windows of a key may merge."""
        return isinstance(self.window, Session)

    @property
    def closes(self) -> bool:
        """Whether windows refuse records once they are closed.

        Of sessions, the one that the record makes decides. Aggregates without a window refuse none.
        """
        return not isinstance(self.window, Session | Global)

    @property
    def merges_ahead(self) -> bool:
        """Whether its panes are merged ahead (`tidemill.core.time.pane_tree`)."""
        return not self.chooses and levels_of(self.window.panes) > 0

    @property
    def shape(self) -> Mapping[str, str]:
        """What decides how rows of state merge, one text for each part; state of another shape cannot be merged."""
        aggregates = {f"aggregate {name}": encoded(aggregate) for name, aggregate in self.aggregates.items()}
        named = {} if self.bounds == WINDOW_COLUMNS else {"columns of the window": list(self.bounds)}
        # Which sessions are published decides which ones a batch takes back.
        when = {"trigger": self.trigger.value} if self.merging else {}
        parts = {"keys": list(self.keys), "window": encoded(self.window), **named, **when, **aggregates}
        return {name: written(part) for name, part in parts.items()}

    @property
    def legacy_shape(self) -> Mapping[str, str]:
        """The shape as older ledgers have it; parts that did not exist then are left out."""
        return legacy_shape(self.keys, self.window, self.aggregates)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSink:
    """A published table of rows as they are. `paths` leads from each input to the table.

    If `topic` is set, its rows are also sent there.
    """

    table: str
    contract: Contract
    columns: tuple[str, ...]
    paths: Mapping[str, tuple[tuple[Step, ...], ...]]
    topic: str | None = None

    @property
    def row_key(self) -> tuple[str, ...]:
        """Always empty: rows are only appended, never updated."""
        return ()


Sink = WindowedSink | RowSink | FiringSink

StatefulSink = WindowedSink | FiringSink
"""A table whose results need what earlier batches have aggregated."""

SingleSink = RowSink | FiringSink
"""A table of single records or firings: a backfill computes whole batches of it again."""


def updates_rows(sink: Sink) -> TypeGuard[StatefulSink]:
    """Whether a batch may update or remove rows that are published; otherwise it only appends some."""
    return isinstance(sink, WindowedSink) or (isinstance(sink, FiringSink) and sink.replaces)


def named_windows(sink: StatefulSink) -> Panes:
    """The windows whose bounds the late table names; one without bounds where event time does not bound them."""
    return OnePane() if isinstance(sink, FiringSink) and not sink.bounded else sink.panes
