"""State tables: appended slice by slice, read pane by pane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake import DeltaTable

from tidemill.core.errors import EngineError
from tidemill.core.flow import WindowedSink
from tidemill.core.schema import Field, Scalar
from tidemill.core.slices import SliceSet
from tidemill.core.times import moment
from tidemill.engine.lanes import Lane
from tidemill.engine.places import Uris
from tidemill.tables.arrow_types import schema_fields
from tidemill.tables.handles import newest
from tidemill.tables.known import Known
from tidemill.tables.protocol import Between, TableSpec


def state_horizon(pipeline: str, sink: WindowedSink) -> str:
    """The transaction by which a state table remembers the earliest batch whose state it has whole."""
    return f"{pipeline}/horizon/{sink.table}"


def check_horizon(uris: Uris, sink: WindowedSink, to: int) -> None:
    """Refuses to go back to batch `to` when maintenance has removed state that counted then.

    The published tables of then may be all there: no file of theirs was replaced.

    Raises:
        EngineError: it has.
    """
    state = State.of(uris, sink)
    horizon = None if state is None else state.handle.transaction_version(state_horizon(uris.pipeline, sink))
    if horizon is not None and to < horizon:
        raise EngineError(
            f"{uris.pipeline}: maintenance has removed state of batch {to}; what batch {horizon} had is there",
            fix=f"rewind to batch {horizon} or a later one; `tidemill maintain --keep` says how far back to keep",
        )


PaneRange = tuple[int | None, int | None]

PANE_FIELDS = (Field(name="pane_day", type=Scalar.DATE), Field(name="pane_start", type=Scalar.TIMESTAMP))


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state of a windowed sink as it lies there: its columns, and a handle on its newest version."""

    spec: TableSpec
    handle: DeltaTable

    @staticmethod
    def of(uris: Uris, sink: WindowedSink, known: Known | None = None) -> State | None:
        """The state of a sink, or None while there is none. What is `known` of it is checked first.

        Raises:
            TableDamaged: it is not what is known of it.
            LedgerDamaged: what is known of it lacks something that it holds.
            EngineError: there is one, but it cannot be opened.
        """
        spec = uris.state(sink, PANE_FIELDS)
        handle = newest(spec)
        if known is not None:
            known.check(spec, handle)
        if handle is None:
            return None
        fields = schema_fields(pa.schema(handle.schema().to_arrow()))
        return State(spec=uris.state(sink, fields), handle=handle)

    def at_most(self, ranges: Sequence[PaneRange]) -> int:
        """How many rows there are of these panes at most, visible or not: from the statistics of files alone."""
        files = pa.table(self.handle.get_add_actions(flatten=True))
        return sum(_rows_in(files, panes) for panes in ranges)

    def read(self, lane: Lane[Any], ranges: Sequence[PaneRange], slices: SliceSet) -> list[Any]:
        """The visible rows of these panes, one part per range."""
        table = lane.table(self.spec, self.handle)
        return [lane.visible(table.read(where=pane_predicates(panes)), slices) for panes in ranges]


def _rows_in(files: pa.Table, panes: PaneRange) -> int:
    low, high = panes
    lowest, highest = files["min.pane_start"].cast(pa.int64()), files["max.pane_start"].cast(pa.int64())
    inside = pc.is_valid(files["num_records"])
    if low is not None:
        # Spark cuts the greatest moment of a file to milliseconds.
        inside = pc.and_(inside, pc.fill_null(pc.greater(highest, low - 1000), True))
    if high is not None:
        inside = pc.and_(inside, pc.fill_null(pc.less(lowest, high), True))
    return pc.sum(files["num_records"].filter(inside)).as_py() or 0


def pane_predicates(panes: PaneRange) -> tuple[Between, ...]:
    """The rows of these panes, by partition and by statistics of files."""
    low, high = (None if edge is None else moment(edge) for edge in panes)
    return (
        Between(
            column="pane_day",
            low=None if low is None else low.date(),
            high=None if high is None else high.date() + timedelta(days=1),
        ),
        Between(column="pane_start", low=low, high=high),
    )
