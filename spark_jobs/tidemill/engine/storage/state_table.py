"""State tables: appended slice by slice, read pane by pane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import DeltaTable

from tidemill.core.bind.sinks import StatefulSink
from tidemill.core.errors import EngineError
from tidemill.core.plan.slices import SliceSet
from tidemill.core.time.times import moment
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.engine.storage.table_layout import NODE_FIELDS, PANE_FIELDS, Uris
from tidemill.tables.arrow_types import schema_fields
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.expected_version import ExpectedVersion
from tidemill.tables.handles import newest
from tidemill.tables.interface import Between, TableSpec
from tidemill.tables.skipping import Files

if TYPE_CHECKING:
    from tidemill.engine.storage.row_writers import RowWriter


def state_horizon(pipeline: str, sink: StatefulSink) -> str:
    """The app id of the transaction in which a state table stores the first batch whose state it holds completely."""
    return f"{pipeline}/horizon/{sink.table}"


def forgotten_app(pipeline: str, sink: StatefulSink) -> str:
    """The app id of the transaction in which a state table stores up to which event time windows are forgotten."""
    return f"{pipeline}/forgotten/{sink.table}"


def horizon_of(uris: Uris, sink: StatefulSink) -> int | None:
    """The first batch whose state is there completely; None if maintenance never removed superseded state."""
    state = State.of(uris, sink)
    horizon = None if state is None else state.handle.transaction_version(state_horizon(uris.owner, sink))
    return None if horizon is None else int(horizon)


def check_horizon(uris: Uris, sink: StatefulSink, to: int) -> None:
    """Refuse to go back to batch `to` if maintenance has removed state that was visible after it.

    The published tables may still have all versions of that time, so they cannot tell.

    Raises:
        EngineError: maintenance has removed such state.
    """
    horizon = horizon_of(uris, sink)
    if horizon is not None and to < horizon:
        raise EngineError(
            f"{uris.pipeline}: maintenance has removed state of batch {to}; what batch {horizon} had is there",
            fix=f"rewind to batch {horizon} or a later one; `tidemill maintain --keep` says how far back to keep",
        )


PaneRange = tuple[int | None, int | None]

Part = tuple[Between, ...]
"""Rows of state that meet all of these conditions."""

LIGHT = 2**26
"""State is light if its files have up to so many bytes. In Java's heap, rows of numbers take three times as much,
sketches about the same."""


@dataclass(frozen=True, kw_only=True)
class State:
    """The table with the state of a windowed sink, or with its merged panes: its columns and its newest version."""

    spec: TableSpec
    handle: DeltaTable

    @staticmethod
    def of(uris: Uris, sink: StatefulSink, expected: ExpectedVersion | None = None) -> State | None:
        """The state of a sink; None if there is none. It is first checked against what is `expected`.

        Raises:
            TableDamaged: the table is not what the ledger says.
            LedgerDamaged: the ledger lacks something that the table holds.
            EngineError: the table exists, but cannot be opened.
        """
        return State._of(uris.state(sink, PANE_FIELDS), expected)

    @staticmethod
    def merged(uris: Uris, sink: StatefulSink, expected: ExpectedVersion | None = None) -> State | None:
        """The merged panes of a sink; None if there are none. Checks and errors are those of `of`."""
        return State._of(uris.merged(sink, NODE_FIELDS), expected)

    @staticmethod
    def _of(spec: TableSpec, expected: ExpectedVersion | None) -> State | None:
        handle = newest(spec)
        if expected is not None:
            expected.check(spec, handle)
        if handle is None:
            return None
        fields = schema_fields(pa.schema(handle.schema().to_arrow()))
        return State(spec=replace(spec, fields=fields), handle=handle)

    def files(self, parts: Sequence[Part]) -> Files:
        """The files that may hold rows of these parts."""
        return Files.of(self.handle).of_parts(tuple(parts))

    def at_most(self, parts: Sequence[Part], files: Files, *, most: int) -> int:
        """An upper bound for the number of rows in these parts, visible or not; `files` may hold them.

        Files that were joined hold many other rows: if they allow more than `most` rows, the rows are counted.
        """
        if files.rows <= most:
            return files.rows
        table = DeltaRsTable(self.spec, opened=self.handle)
        return int(table.read(any_of=tuple(parts), columns=("pane_start",)).num_rows)

    def read(self, writer: RowWriter[Any], parts: Sequence[Part], slices: SliceSet) -> Any:
        """The visible rows of these parts, which must not overlap."""
        table = writer.table(self.spec, self.handle)
        where = () if slices.since == 1 else (Between(column="batch_id", low=slices.since, high=None),)
        return writer.visible(table.read(where=where, any_of=tuple(parts)), slices)


def node_predicates(level: int, panes: PaneRange) -> Part:
    """Predicates for nodes of a level above 0 that start in `panes`, by partition and by statistics of files."""
    low, high = (None if edge is None else moment(edge) for edge in panes)
    return (
        Between(column="pane_level", low=level, high=level + 1),
        Between(column="pane_start", low=low, high=high),
    )


def pane_predicates(panes: PaneRange) -> Part:
    """Predicates for rows of panes that start in `panes`, by partition and by statistics of files."""
    low, high = (None if edge in (None, BEGINNING, END) else moment(edge) for edge in panes)
    return (
        Between(
            column="pane_day",
            low=None if low is None else low.date(),
            high=None if high is None else high.date() + timedelta(days=1),
        ),
        Between(column="pane_start", low=low, high=high),
    )
