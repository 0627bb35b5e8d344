"""An engine of a few lines of Python in the place of Spark, for the pipeline `sums`: all else is the product.

There may be several tables, each of the same windows and with a filter that leaves out one user.

It decodes, filters, aggregates and merges one row after the other. Plans, ledger, slices, state, fences, publication,
quarantine and the late table are the product's own, so that a batch takes milliseconds and protocol and storage are
what is tested.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from tidemill.core.bind.flow import WindowedSink
from tidemill.core.contract.schema import Field
from tidemill.core.declare.operators import Filter
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.log.scan import Record
from tidemill.core.plan.amendments import Repair
from tidemill.core.protocol.account import Account
from tidemill.core.time.pane_tree import Node
from tidemill.core.time.times import micros, moment
from tidemill.engine.aggregate.counting import Counts
from tidemill.engine.attempt import Attempt
from tidemill.engine.publish.merged_ahead import Ahead
from tidemill.engine.publish.side_tables import SideOutputs
from tidemill.engine.publish.window_results import Fired, Windows
from tidemill.engine.steps import Aggregated, Read
from tidemill.engine.storage.staged_rows import RowWriters, StagedRows
from tidemill.engine.storage.state_table import State
from tidemill.log.reading import read_records

TIMESTAMP = pa.timestamp("us", "UTC")
STATE = pa.schema(
    [
        ("pane_day", pa.date32()),
        ("pane_start", TIMESTAMP),
        ("user", pa.string()),
        ("n__value", pa.int64()),
        ("amount__value", pa.int64()),
        ("amount__n", pa.int64()),
        ("amount__high", pa.int64()),
        ("amount__low", pa.int64()),
    ]
)
NODE = pa.schema([("pane_level", pa.int32()), *[*STATE][1:], ("_touched", pa.bool_())])
ROWS = pa.schema(
    [
        ("window_start", TIMESTAMP),
        ("window_end", TIMESTAMP),
        ("user", pa.string()),
        ("n", pa.int64()),
        ("amount", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Row:
    """A record with what became of it: `error` for a rejected one."""

    record: Record
    time: int = 0
    user: str = ""
    amount: int = 0
    error: str = ""


def decoded(record: Record, most: int) -> Row:
    """The record as the contract of `events` has it."""
    try:
        event = json.loads(record.value or b"")
        time, user, amount = datetime.fromisoformat(event["ts"]), event["user"], event["amount"]
    except (ValueError, KeyError):
        return Row(record, error="not an event")
    if amount > most:
        return Row(record, error="amount too large")
    return Row(record, micros(time.astimezone(UTC)), user, amount)


class TinyWriters(RowWriters):
    """Rows are Arrow tables, and there is no job."""

    def stage(self, frame: Any, *, at_most: int) -> StagedRows:
        return StagedRows(self.driver, frame, frame.num_rows)

    def together(self, parts: Sequence[StagedRows]) -> StagedRows:
        names = parts[0].rows.column_names
        rows = pa.concat_tables([p.rows.select(names) for p in parts], promote_options="permissive")
        return StagedRows(self.driver, rows, rows.num_rows)


class TinyWindows(Windows):
    """Merges state in a dictionary."""

    def _folded(
        self, sink: WindowedSink, parts: Sequence[StagedRows], types: Sequence[Field], by: Sequence[str]
    ) -> StagedRows:
        sums: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
        for row in (row for part in parts for row in part.rows.to_pylist()):
            _add(sums[(*(row[c] for c in by), row["user"])], row)
        rows = [(*key, n, amount, n, 0, amount) for key, (n, amount) in sorted(sums.items())]
        schema = pa.schema([*(NODE if "pane_level" in by else STATE)][:2] + [*STATE][2:])
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
        return self.writers.stage(table, at_most=table.num_rows)

    def _merged_ahead(
        self, ahead: Ahead, bounds: Mapping[str, pa.Scalar], own: Sequence[StagedRows], old: Sequence[StagedRows]
    ) -> Fired:
        bound = {name: value.as_py() for name, value in bounds.items()}
        tree = replace(ahead.tree, since=bound["_since"], built=bound["_built"])
        windows, nodes = _Sums(), _Sums()
        for row in (row for part in (*own, *old) for row in part.rows.to_pylist()):
            node = Node(row["pane_level"], micros(row["pane_start"]))
            for start in tree.window_starts(node, alone=row["_alone"]):
                if bound["_first"] <= start <= bound["_last"]:
                    end = start + ahead.sink.window.panes.size
                    on_time = bound["_before"] < end <= bound["_after"]
                    again = bound["_refused_until"] < end <= bound["_again_until"]
                    if on_time or again:
                        windows.add((start, row["user"]), row, fires=on_time or row["_touched"])
            for above in tree.grown(node, bound["_until"], alone=row["_alone"]):
                nodes.add((above.level, above.start, row["user"]), row, fires=row["_touched"])
        rows = self._published(ahead.sink, {key: windows.sums[key] for key in windows.fires})
        found = [
            dict(
                zip(NODE.names, (level, moment(start), user, n, amount, n, 0, amount, key in nodes.fires), strict=True)
            )
            for key, (n, amount) in sorted(nodes.sums.items())
            for level, start, user in [key]
        ]
        held = self.writers.stage(pa.Table.from_pylist(found, schema=NODE), at_most=len(found))
        return Fired(rows, held if found else None)

    def _merged(self, sink: WindowedSink, state: Sequence[StagedRows], *, each: int) -> StagedRows | None:
        found = _Sums()
        for row in (row for part in state for row in part.rows.to_pylist()):
            for window in sink.window.panes.windows_of(micros(row["pane_start"])):
                on_time = row["_before"] < window.end <= row["_after"]
                if on_time or row["_refused_until"] < window.end <= row["_again_until"]:
                    found.add((window.start, row["user"]), row, fires=on_time or row["_touched"])
        return self._published(sink, {key: found.sums[key] for key in found.fires}) if state else None

    def _published(self, sink: WindowedSink, sums: Mapping[tuple[int, str], Sequence[int]]) -> StagedRows:
        size = sink.window.panes.size
        rows = [
            dict(zip(ROWS.names, (moment(s), moment(s + size), u, *sums[s, u]), strict=True)) for s, u in sorted(sums)
        ]
        return self.writers.stage(pa.Table.from_pylist(rows, schema=ROWS), at_most=len(rows))


class _Sums:
    """Sums by key, and which of them count."""

    def __init__(self) -> None:
        self.sums: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
        self.fires: set[Any] = set()

    def add(self, key: Any, row: Mapping[str, Any], *, fires: bool) -> None:
        """One more row."""
        _add(self.sums[key], row)
        if fires:
            self.fires.add(key)


def _add(found: list[int], row: Mapping[str, Any]) -> None:
    found[0] += row["n__value"]
    found[1] += row["amount__value"]


class TinySideOutputs(SideOutputs):
    """Rejected and late rows, given as they are."""

    def __init__(self, attempt: TinyAttempt, found: Aggregated) -> None:
        super().__init__((), found.counts, attempt.plan, attempt.writers, attempt.publisher.superseded_aside)
        object.__setattr__(self, "attempt", attempt)

    def rejected(self, spec: Any) -> StagedRows | None:
        rows = [place(r) | {"reasons": [r.error], "value": r.record.value} for r in self.attempt.bad]
        return self._rows(rows)

    def late(self, spec: Any) -> StagedRows | None:
        rows = []
        for sink, row in self._kept():
            window = sink.window.panes.last_window_of(row.time)
            rows.append(
                place(row)
                | {
                    "event_time": moment(row.time),
                    "table_name": sink.table,
                    "window_start": moment(window.start),
                    "window_end": moment(window.end),
                    "watermark": moment(self.plan.lateness_watermark),
                    "row": "{}",
                    "value": row.record.value,
                }
            )
        return self._rows(rows)

    def _kept(self) -> list[tuple[WindowedSink, Row]]:
        if self.plan.job is None:
            return self.attempt.refused
        before = {(r["table_name"], r["partition"], r["offset"]) for r in self.superseded().to_pylist()}
        return [(sink, r) for sink, r in self.attempt.refused if (sink.table, *_offset(r)) in before]

    def _rows(self, rows: list[dict[str, Any]]) -> StagedRows | None:
        if not rows:
            return None
        for row in rows:
            row |= {"batch_id": self.plan.batch_id, "recorded_at": self.plan.clock}
        types = {
            "partition": pa.int32(),
            "timestamp": TIMESTAMP,
            "recorded_at": TIMESTAMP,
            "event_time": TIMESTAMP,
            "window_start": TIMESTAMP,
            "window_end": TIMESTAMP,
            "watermark": TIMESTAMP,
            "value": pa.binary(),
        }
        columns = {name: pa.array([r[name] for r in rows], types.get(name)) for name in rows[0]}
        return self.writers.stage(pa.table(columns), at_most=len(rows))


def place(row: Row) -> dict[str, Any]:
    """Where the record is in the log."""
    found = row.record
    return {"topic": found.topic, "partition": found.partition, "offset": found.offset, "timestamp": found.timestamp}


def left_out(sink: Any, source: str) -> str:
    """The user that the filter of a table leaves out."""
    [path] = sink.paths[source]
    [filtering] = [step.operator for step in path if isinstance(step.operator, Filter)]
    return re.findall(r"'(\w+)'", filtering.predicate)[-1]


def _offset(row: Row) -> tuple[int, int]:
    return row.record.partition, row.record.offset


class TinyAttempt(Attempt):
    """`Attempt` without Spark."""

    def open_writers(self) -> RowWriters:
        """Arrow tables, and no job."""
        return TinyWriters(self.session, driver_rows=self.driver_rows, writer="delta-rs")

    def windows(self, states: Mapping[str, State]) -> Windows:
        """What merges windows in a dictionary."""
        return TinyWindows(
            session=self.session,
            plan=self.plan,
            uris=self.uris,
            writers=self.writers,
            expected=self.expected,
            states=dict(states),
        )

    @staticmethod
    def check_types(session: Any, flow: Any, uris: Any) -> None:
        """Nothing is computed by expressions."""

    def read(self) -> Read:
        """Every record, and what becomes of it."""
        if self.given_up:
            return Read()
        [source] = self.flow.inputs
        [rule] = source.contract.row_rules
        maximum = int(re.findall(r"\d+", rule.predicate)[-1])
        scan = self.scans.get(source.topic)
        rows = [decoded(r, maximum) for r in read_records(scan)] if scan else []
        self.read_rows = len(rows)
        self.bad = [r for r in rows if r.error]
        good = [r for r in rows if not r.error]
        self.good, self.taken, self.refused = len(good), defaultdict[str, list[Row]](list), list[tuple[Any, Row]]()
        only = self.plan.work.only if isinstance(self.plan.work, Repair) else None
        for sink in (sink for sink in self.flow.sinks if only in (None, sink.table)):
            for row in (r for r in good if r.user != left_out(sink, source.name)):
                if self._is_late(sink, row):
                    self.refused.append((sink, row))
                else:
                    self.taken[sink.table].append(row)
        self.times: dict[TopicPartition, int] = {}
        for row in good:
            tp = TopicPartition(source.topic, row.record.partition)
            self.times[tp] = max(self.times.get(tp, row.time), row.time)
        return Read()

    def _is_late(self, sink: Any, row: Row) -> bool:
        lateness = micros(sink.allowed_lateness) if self.plan.live else 0
        watermark, job = self.plan.lateness_watermark, self.plan.job
        spared = (job.whole or {}).get(sink.table, ()) if job is not None else ()
        if any(span.first <= row.time < span.last + sink.window.panes.size for span in spared):
            return False
        return sink.window.panes.is_late(row.time, watermark=watermark, allowed_lateness=lateness)

    def count(self, read: Read) -> dict[str, Counts]:
        """What became of the records."""
        [source] = self.flow.inputs
        if self.given_up:
            return {source.topic: Counts(account=Account())}
        taken = {_offset(row) for rows in self.taken.values() for row in rows}
        late = {_offset(row) for _, row in self.refused} - taken
        account = Account(
            read=self.read_rows,
            aggregated=len(taken),
            filtered=self.good - len(taken) - len(late),
            rejected=len(self.bad),
            late=len(late),
        )
        return {source.topic: Counts(account=account, max_event_times=self.times, late_rows=len(self.refused))}

    def job(self, read: Read, sink: Any, without: Any = None) -> Any:
        sums: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
        for row in self.taken[sink.table]:
            found = sums[sink.window.panes.pane_of(row.time), row.user]
            found[0] += 1
            found[1] += row.amount
        rows = [
            dict(zip(STATE.names, (moment(pane).date(), moment(pane), user, n, amount, n, 0, amount), strict=True))
            for (pane, user), (n, amount) in sorted(sums.items())
        ]
        return pa.Table.from_pylist(rows, schema=STATE)

    def side_outputs(self, found: Aggregated) -> SideOutputs:
        """What goes aside."""
        return TinySideOutputs(self, found)
