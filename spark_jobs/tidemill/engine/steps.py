"""The results of an attempt's steps, each made from the one before: Read, Aggregated, Staged, Published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.flow import Flow
from tidemill.core.contract.verdict import CheckResult
from tidemill.core.plan.open_sessions import OpenSessions
from tidemill.core.plan.position import Position, TableMark
from tidemill.core.time.spans import PaneSpan
from tidemill.engine.aggregate.counting import Counts
from tidemill.engine.aggregate.input_stream import Stream
from tidemill.engine.publish.noted import Noted
from tidemill.engine.publish.sink_rows import SinkRows
from tidemill.engine.storage.spark_writer import SparkWriter
from tidemill.engine.storage.staged_rows import StagedRows
from tidemill.engine.storage.state_table import State


@dataclass(frozen=True, slots=True)
class Read:
    """Step 2: how the planned records become rows, for each input. Nothing is read."""

    streams: tuple[Stream, ...] = ()

    def kept(self, flow: Flow, writer: SparkWriter, *, often: bool = False) -> Read:
        """The same rows, cached if several jobs of Spark read them, as it is known of those that are read `often`."""
        once = not often and len(flow.sinks) == 1 and all(len(stream.branches) == 1 for stream in self.streams)
        return self if once else Read(tuple(stream.kept(writer) for stream in self.streams))


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregated:
    """Step 3: the result of the pass over the records: `counts` by topic, everything else by published table.

    `partials` are the rows of state that this attempt has written, in the panes that start at `touched` (microseconds);
    `states` are the tables that hold them. `rows` are for tables without windows. `ordered` are records of tables of
    firings, folded into pieces. `unfit` are broken rules for values that do not fit the types of their contract.
    """

    read: Read
    counts: Mapping[str, Counts]
    partials: Mapping[str, StagedRows] = field(default_factory=dict)
    touched: Mapping[str, list[int]] = field(default_factory=dict)
    states: Mapping[str, State] = field(default_factory=dict)
    rows: Mapping[str, StagedRows] = field(default_factory=dict)
    unfit: tuple[CheckResult, ...] = ()
    ordered: Mapping[str, pa.Table] = field(default_factory=dict)

    @property
    def panes(self) -> Mapping[str, PaneSpan]:
        """The panes that the state of this attempt lies in, by published table."""
        return {table: PaneSpan(min(starts), max(starts)) for table, starts in self.touched.items() if starts}


@dataclass(frozen=True, slots=True)
class Staged:
    """Step 4: the rows to publish, and broken rules for values that do not fit the types of their contract.

    `open_since` says from when on tables of sessions may have open ones, as `Position.open_since` does; `firings` is
    what tables of firings leave for position and commit.
    """

    rows: tuple[SinkRows, ...] = ()
    unfit: tuple[CheckResult, ...] = ()
    open_since: Mapping[str, OpenSessions] = field(default_factory=dict)
    firings: Noted = field(default_factory=Noted)

    def noted(self, position: Position) -> Position:
        """The position of this batch, with what staging has found."""
        open_since = {**(position.open_since or {}), **self.open_since} or None
        return self.firings.on(replace(position, open_since=open_since))


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Step 6: what was written; readers see it from now on.

    `versions` has the version of each table that the attempt wrote, `marks` the marks of those that the ledger knows.
    `reasons` says how many records were rejected for each reason. `rows` are to be sent to topics.
    """

    versions: Mapping[str, int]
    marks: Mapping[str, TableMark]
    reasons: Mapping[str, int]
    rows: tuple[SinkRows, ...]


@dataclass
class StateWritten:
    """Rows of state that step 3 has written so far, by table; what `Aggregated` takes."""

    partials: dict[str, StagedRows] = field(default_factory=dict)
    touched: dict[str, list[int]] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
