"""What step 3 makes of the rows that entered each table, whoever computed them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.sinks import RowSink, Sink, WindowedSink
from tidemill.core.contract.verdict import CheckResult
from tidemill.engine.aggregate.counting import Counts
from tidemill.engine.publish.publishing import own_values
from tidemill.engine.read.fitted import told
from tidemill.engine.slice_writer import SliceWriter
from tidemill.engine.steps import Aggregated, Read, StateWritten
from tidemill.engine.storage.staged_rows import StagedRows


@dataclass
class Aggregating:
    """The results of the tables so far; state goes to `slices`."""

    slices: SliceWriter
    state: StateWritten = field(default_factory=StateWritten)
    rows: dict[str, StagedRows] = field(default_factory=dict)
    ordered: dict[str, pa.Table] = field(default_factory=dict)
    unfit: list[CheckResult] = field(default_factory=list)

    def take(self, sink: Sink, staged: StagedRows) -> None:
        """Partial aggregates of panes, rows in the types of the contract and `UNFIT`, or folded rows."""
        match sink:
            case WindowedSink():
                self.slices.state(sink, staged, self.state)
            case RowSink():
                staged, broken = told(staged, sink.table, sink.contract)
                self.unfit += broken
                self.rows[sink.table] = staged.stamped(own_values(self.slices.plan))
            case FiringSink():
                self.ordered[sink.table] = staged.writer.arrow(staged.rows)

    def result(self, read: Read, counts: Mapping[str, Counts]) -> Aggregated:
        """The result of the step."""
        unfit, ordered = tuple(self.unfit), self.ordered
        return Aggregated(read=read, counts=counts, rows=self.rows, unfit=unfit, ordered=ordered, **vars(self.state))
