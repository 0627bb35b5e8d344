"""Where a published number comes from: the batches that read its records, and the batches that published it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import StatefulSink, WindowedSink
from tidemill.core.errors import InputError
from tidemill.core.history.zones import Zone
from tidemill.core.plan.position import Position
from tidemill.core.plan.slices import BatchRange, batch_ranges
from tidemill.core.plan.work import Kind
from tidemill.core.repair.state_retention import forgotten_sessions
from tidemill.core.time.panes import Window
from tidemill.core.time.spans import PaneSpan
from tidemill.core.time.times import micros, show_moment
from tidemill.engine.storage.table_layout import Uris
from tidemill.inspect.contributions import Lineage, check_key, contributions, corrections_of, slices_of
from tidemill.inspect.firing_lineage import lineage_of_firings
from tidemill.inspect.firings import publications_of
from tidemill.inspect.window_rows import nothing_counted, row_of
from tidemill.project.project import Project


def lineage(
    project: Project, pipeline: str, table: str | None, start: datetime | None, key: Mapping[str, str]
) -> Lineage:
    """Find what made the number of a window and key, from ledger, state and published table, without Spark.

    `start` is the start of the window; None for a table without windows, and for all firings of a key.

    Raises:
        InputError: there is no such table, no window starts at `start`, the key has other columns, or no record of the
            window has this key.
    """
    flow, ledger = project.pipeline(pipeline), project.ledger(pipeline)
    sink = _sink(flow, table)
    if isinstance(sink, FiringSink):
        return lineage_of_firings(project.uris(pipeline), ledger, sink, start, key)
    check_key(sink, key)
    uris = project.uris(pipeline)
    window = _session(uris, sink, start, key) if sink.merging and start is not None else _window(sink, start)
    view, past = ledger.view(), ledger.past()
    forgotten = _is_forgotten(sink, window, view.position)
    # Some of its panes may still exist because a later window shares them, but a part tells nothing.
    slices = [] if forgotten else slices_of(uris, sink, key, (window.start, window.end))
    row = row_of(uris, sink, start, key)
    touched = {s["batch_id"] for s in slices}
    batches = list(past.batches(partial(_may_matter, sink, window, batch_ranges(touched))))
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
        contributions=contributions(ledger, slices, batches, view.position.slices),
        publications=publications_of(sink, window, touched, batches, since),
        corrections=corrections_of(uris, sink, start, key),
        lacking=lacking,
        since=since,
        forgotten=forgotten,
    )


def _is_forgotten(sink: WindowedSink, window: Window, position: Position) -> bool:
    """Whether maintenance may have removed state of the window."""
    until = forgotten_sessions(sink, position) if sink.merging else position.forgotten_until
    return until is not None and window.end <= until


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


def _lacks(incomplete: Mapping[str, PaneSpan] | None, sink: WindowedSink, window: Window) -> bool:
    span = (incomplete or {}).get(sink.table)
    return span is not None and span.first <= window.start <= span.last


def _sink(flow: Flow, table: str | None) -> StatefulSink:
    known = {s.table: s for s in flow.sinks if isinstance(s, StatefulSink)}
    if table is None and len(known) == 1:
        return next(iter(known.values()))
    if table not in known:
        raise InputError(
            f"{flow.name}: {'say which table' if table is None else f'{table!r} has no windows'}",
            fix=f"--table is one of {', '.join(known) or 'none: no table has windows'}",
        )
    return known[table]


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
