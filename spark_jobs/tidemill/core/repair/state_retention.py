"""Which state may be removed: that of windows that closed so long ago that nothing may change them any more.

A position says up to which event time windows are *forgotten*: those that end there or earlier never fire again from
state. Their panes are removed, except those that belong to a later window, too. So state holds a window completely, or
nobody reads it: a record for a forgotten window is refused, put aside, or the window is computed from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.errors import AmendmentError, DeclarationError, Incompatible
from tidemill.core.plan.position import Position
from tidemill.core.time.times import micros, show_duration, show_moment
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.core.time.windows import Global

EARLIEST = -62_135_596_800_000_000
"""The start of year 1 in microseconds; no event time is earlier."""


def lacking(sink: WindowedSink, position: Position) -> int:
    """An event time: windows that end here or earlier may lack records from before the table existed.

    A table without windows counts from its first batch on, so nothing is lacking there.
    """
    whole = position.whole_after(sink.table)
    if whole == BEGINNING or isinstance(sink.window, Global):
        return BEGINNING
    return sink.window.panes.last_window_of(whole).end


def forgotten_sessions(sink: WindowedSink, position: Position) -> int:
    """An event time: sessions that end here or earlier are forgotten; no record that is taken may join them."""
    until = position.forgotten_until
    return BEGINNING if until is None else until - sink.session_panes.gap


def forgettable(flow: Flow, now: Position, others: Sequence[Position], age: timedelta) -> int | None:
    """The event time up to which windows can be forgotten: those that closed for good at least `age` ago.

    They must be closed for the position `now` and for all of `others`, the positions that a rewind can go back to.
    None when that is not later than before, when a backfill is open, or when one of the positions has seen no event.
    """
    windowed = _windowed(flow)
    if now.backfill is not None or not windowed:
        return None
    before = BEGINNING if now.forgotten_until is None else now.forgotten_until
    closed = [_closed(position, sink) for position in (now, *others) for sink in windowed]
    if BEGINNING in closed:
        return None
    jobs = [first for p in others if (first := _first_pane(p)) is not None and first >= before]
    until = min([*(at - micros(age) for at in closed), *jobs])
    earliest = EARLIEST + max(sink.window.panes.longest for sink in windowed)
    return until if until > max(before, earliest) else None


def _windowed(flow: Flow) -> list[WindowedSink]:
    """The sinks whose windows end; totals without a window are never forgotten."""
    return [sink for sink in flow.sinks if isinstance(sink, WindowedSink) and not isinstance(sink.window, Global)]


def _closed(position: Position, sink: WindowedSink) -> int:
    """Live batches from this position on add nothing to windows that end here or earlier; BEGINNING: to no window."""
    at = position.watermark_of(sink.table)
    if at == END:
        times = [clock.max_event_time for clock in position.clocks.values() if clock.max_event_time is not None]
        at = max(times, default=BEGINNING)
    return at if at == BEGINNING else at - micros(sink.allowed_lateness)


def _first_pane(position: Position) -> int | None:
    """The start of the first pane that an open backfill will replace, in microseconds; None without a backfill."""
    spans = position.backfill.panes.values() if position.backfill is not None else ()
    return min((span.first for found in spans for span in found), default=None)


def check_lateness(flow: Flow, position: Position) -> None:
    """Refuse a declaration that lets live records into windows whose state may be removed.

    Raises:
        Incompatible: `allowed_lateness` of a table reaches back to forgotten windows.
    """
    until, windowed = position.forgotten_until, _windowed(flow)
    if until is None or position.watermark in (BEGINNING, END):
        return
    for sink in windowed:
        watermark = position.watermark_of(sink.table)
        if watermark - micros(sink.allowed_lateness) < until:
            raise Incompatible(
                f"{flow.name}: allowed_lateness of {sink.table}, {show_duration(sink.allowed_lateness)}, lets records "
                f"into windows that end before {show_moment(until)}, whose state maintenance has removed",
                fix=f"say at most {show_duration(timedelta(microseconds=watermark - until))} for now, or "
                f"build all again from the log: `tidemill rebuild {flow.name}`",
            )


def check_age(flow: Flow, age: timedelta) -> None:
    """Refuse windows that take records for longer than their state is kept.

    Raises:
        DeclarationError: `allowed_lateness` of a table is more than `[maintenance] state`.
    """
    for sink in _windowed(flow):
        if sink.allowed_lateness > age:
            raise DeclarationError(
                f"{flow.name}: windows of {sink.table} take records for {show_duration(sink.allowed_lateness)} after "
                f"their end (allowed_lateness), and [maintenance] state keeps closed ones for {show_duration(age)}",
                fix=f'say state = "{show_duration(sink.allowed_lateness)}" or more in tidemill.toml, or allow less',
            )


def back_to(flow: Flow, then: Position, now: Position) -> Position:
    """The position `then` for a rewind, which must remember what is forgotten by now.

    Raises:
        AmendmentError: after the rewind, windows would fire whose state may be removed.
    """
    until = now.forgotten_until
    if until is None:
        return then
    windowed, first = _windowed(flow), _first_pane(then)
    fires = [_closed(then, sink) for sink in windowed] if then.watermark != END else []
    if min([*fires, *(() if first is None else (first,))], default=until) < until:
        raise AmendmentError(
            f"{flow.name}: after batch {then.batch_id}, windows that end before {show_moment(until)} would fire "
            "again, and maintenance has removed their state; nothing was moved",
            fix=f"rewind to a batch from which on they stay closed; for older ones `tidemill backfill {flow.name}` "
            f"computes windows from the log, and `tidemill rebuild {flow.name}` all of them",
        )
    return then.forgetting(until)
