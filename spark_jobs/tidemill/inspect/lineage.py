"""Where a published number comes from: the batches that read its records, and the batches that published it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.errors import InputError
from tidemill.core.history.coverage import Cover, covers_of
from tidemill.core.history.index import IndexedBatch
from tidemill.core.history.zones import Zone
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.amendments import Fold, Ranges
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position, Since
from tidemill.core.plan.slices import BatchRange, batch_ranges
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Planned
from tidemill.core.repair.state_retention import forgotten_sessions
from tidemill.core.time.panes import Window
from tidemill.core.time.spans import PaneSpan
from tidemill.core.time.times import micros, show_moment
from tidemill.core.time.watermarks import END
from tidemill.engine.storage.state_table import State, pane_predicates
from tidemill.engine.storage.table_layout import Uris
from tidemill.inspect.firings import Publication, publications_of
from tidemill.inspect.window_rows import matching, nothing_counted, row_of
from tidemill.ledger.ledger import Ledger
from tidemill.project.project import Project
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.handles import newest


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """A batch whose slice has rows for a window and key: its own, or those of batches it `folded`.

    `counts` says whether the slice is visible.
    """

    batch_id: int
    attempt: int
    kind: Kind
    ranges: Ranges
    folded: tuple[BatchRange, ...]
    rows: int
    counts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Everything behind the number of one window and key. `row` is its present row.

    `lacking` are offsets that the log lost before they were read; their records may belong to the window. Batches
    before `since` counted by another declaration. If `forgotten`, the state of the window was removed: nobody knows any
    more which batches read its records and when it fired for them.
    """

    table: str
    window: Window
    key: Mapping[str, str]
    row: Mapping[str, Any] | None
    contributions: tuple[Contribution, ...] = ()
    publications: tuple[Publication, ...] = ()
    corrections: tuple[Mapping[str, Any], ...] = ()
    lacking: tuple[OffsetRange, ...] = ()
    since: Since | None = None
    forgotten: bool = False

    @property
    def all_times(self) -> bool:
        """Whether the number is over all event times, without a window."""
        return self.window.end == END


def lineage(
    project: Project, pipeline: str, table: str | None, start: datetime | None, key: Mapping[str, str]
) -> Lineage:
    """Find what made the number of a window and key, from ledger, state and published table, without Spark.

    `start` is the start of the window; None for a table without windows.

    Raises:
        InputError: there is no such table, no window starts at `start`, the key has other columns, or no record of the
            window has this key.
    """
    flow, ledger = project.pipeline(pipeline), project.ledger(pipeline)
    sink = _sink(flow, table)
    _check_key(sink, key)
    uris = project.uris(pipeline)
    window = _session(uris, sink, start, key) if sink.merging and start is not None else _window(sink, start)
    view, past = ledger.view(), ledger.past()
    forgotten = _is_forgotten(sink, window, view.position)
    # Some of its panes may still exist because a later window shares them, but a part tells nothing.
    slices = [] if forgotten else _slices(uris, sink, window, key)
    row = row_of(uris, sink, start, key)
    touched = {s["batch_id"] for s in slices}
    batches = list(past.batches(partial(_may_matter, sink, window, batch_ranges(touched))))
    covers = {c.batch_id: c for c in covers_of(batches, view.position.slices)}
    known = {b.batch_id: b for b in batches}
    parts = [_contribution(known.get(s["batch_id"]) or _plan(ledger, s["batch_id"]), s, covers) for s in slices]
    lacking = tuple(r for b in batches if _lacks(b.incomplete, sink, window) for r in b.skipped or ())
    since = (view.position.since or {}).get(sink.table)
    # Lost records, state that was removed and windows that were left out say why there is no row.
    if row is None and not (slices or forgotten or lacking or since):
        raise nothing_counted(uris, sink, start, key)
    return Lineage(
        table=sink.table,
        window=window,
        key=key,
        row=row,
        contributions=tuple(parts),
        publications=publications_of(sink, window, touched, batches, since),
        corrections=_corrections(uris, sink, start, key),
        lacking=lacking,
        since=since,
        forgotten=forgotten,
    )


def _is_forgotten(sink: WindowedSink, window: Window, position: Position) -> bool:
    """Whether maintenance may have removed state of the window."""
    until = forgotten_sessions(sink, position) if sink.merging else position.forgotten_until
    return until is not None and window.end <= until


def _check_key(sink: WindowedSink, key: Mapping[str, str]) -> None:
    if set(key) != set(sink.keys):
        raise InputError(f"{sink.table} has the key ({', '.join(sink.keys)}), found ({', '.join(key)})")


def _may_matter(sink: WindowedSink, window: Window, touched: Sequence[BatchRange], zone: Zone) -> bool:
    """Whether batches of a zone may have read records of a window, published it, or left gaps in it."""
    low, high = zone.watermarks
    return (
        zone.has_of(touched)
        or low < window.end <= high
        or zone.has_panes(sink.table, window.start, window.end)
        or Kind.REWIND in zone.kinds
        or _lacks(zone.incomplete, sink, window)
    )


def _plan(ledger: Ledger, batch_id: int) -> BatchPlan:
    """The plan of a batch that did not commit."""
    [planned] = ledger.of_batches(BatchRange(batch_id, batch_id + 1), Planned)
    assert isinstance(planned.event, Planned)
    return planned.event.plan


def _lacks(incomplete: Mapping[str, PaneSpan] | None, sink: WindowedSink, window: Window) -> bool:
    span = (incomplete or {}).get(sink.table)
    return span is not None and span.first <= window.start <= span.last


def _sink(flow: Flow, table: str | None) -> WindowedSink:
    windowed = {s.table: s for s in flow.sinks if isinstance(s, WindowedSink)}
    if table is None and len(windowed) == 1:
        return next(iter(windowed.values()))
    firings = [s.table for s in flow.sinks if isinstance(s, FiringSink)]
    if table in firings or (table is None and firings and not windowed):
        raise InputError(
            f"{flow.name}: {table or firings[0]} has firings, and what one is made of follows from all records "
            "of its key before it",
            fix=f"its column batch_id names the batch that published it, and `tidemill history {flow.name} --batch N` "
            "shows what that batch read",
        )
    if table not in windowed:
        raise InputError(
            f"{flow.name}: {'say which table' if table is None else f'{table!r} has no windows'}",
            fix=f"--table is one of {', '.join(windowed) or 'none: no table has windows'}",
        )
    return windowed[table]


def _session(uris: Uris, sink: WindowedSink, start: datetime, key: Mapping[str, str]) -> Window:
    """The published session of a key that starts then; only its row tells where it ends."""
    row = row_of(uris, sink, start, key)
    if row is None:
        raise nothing_counted(uris, sink, start, key)
    return Window(micros(start), micros(row[sink.bounds[1]]))


def _window(sink: WindowedSink, start: datetime | None) -> Window:
    if sink.start is None:
        if start is not None:
            raise InputError(f"{sink.table} has no windows", fix="name the key alone")
        return sink.window.panes.window(0)
    if start is None:
        raise InputError(f"{sink.table} has windows ({sink.window})", fix="name the start of a window: --window START")
    panes, time = sink.window.panes, micros(start)
    window = panes.last_window_of(time)
    if window.start != time:
        raise InputError(
            f"no window of {sink.table} ({sink.window}) starts at {show_moment(start)}",
            fix=f"name the start of a window, as `{sink.start}` has it: the one that holds this time starts at "
            f"{show_moment(window.start)}",
        )
    return window


def _slices(uris: Uris, sink: WindowedSink, window: Window, key: Mapping[str, str]) -> list[dict[str, int]]:
    """Batch, attempt and number of rows of every slice with rows of this window and key, visible or not."""
    state = State.of(uris, sink)
    if state is None:
        return []
    table = DeltaRsTable(state.spec, opened=state.handle)
    columns = ("batch_id", "attempt", *sink.keys)
    rows = matching(table.read(where=pane_predicates((window.start, window.end)), columns=columns), key)
    found: list[dict[str, int]] = rows.group_by(["batch_id", "attempt"]).aggregate([([], "count_all")]).to_pylist()
    return sorted(found, key=lambda s: (s["batch_id"], s["attempt"]))


def _contribution(
    made: IndexedBatch | BatchPlan, found: Mapping[str, int], covers: Mapping[int, Cover]
) -> Contribution:
    cover = covers.get(made.batch_id)
    if isinstance(made, BatchPlan):
        ranges, folded = made.reads, made.work.batches if isinstance(made.work, Fold) else ()
    else:
        ranges, folded = made.ranges, made.folded or ()
    return Contribution(
        batch_id=made.batch_id,
        attempt=found["attempt"],
        kind=made.kind,
        ranges=ranges,
        folded=folded,
        rows=found["count_all"],
        counts=cover is not None and cover.batch.attempt == found["attempt"],
    )


def _corrections(
    uris: Uris, sink: WindowedSink, start: datetime | None, key: Mapping[str, str]
) -> tuple[Mapping[str, Any], ...]:
    spec = uris.corrections()
    if newest(spec) is None:
        return ()
    rows = DeltaRsTable(spec).read(where=()).to_pylist()
    return tuple(
        row
        for row in sorted(rows, key=lambda r: r["batch_id"])
        if row["table_name"] == sink.table and row["window_start"] == start and _same(json.loads(row["key"]), key)
    )


def _same(found: Mapping[str, Any], key: Mapping[str, str]) -> bool:
    return {name: "" if value is None else str(value) for name, value in found.items()} == dict(key)
