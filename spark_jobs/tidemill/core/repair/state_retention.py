"""Which state may be removed: that of windows which closed so long ago that nothing may change them any more.

A position says until when in event time windows are *forgotten*: those that end there or earlier never fire again from
state. Their panes are removed, but for those that a later window has, too. So every window is either whole, or never
looked at: what would need a forgotten one is refused, put aside, or computed from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tidemill.core.bind.flow import Flow, WindowedSink
from tidemill.core.errors import AmendmentError, DeclarationError, Incompatible
from tidemill.core.plan.position import Position
from tidemill.core.time.times import micros, show_duration, show_moment
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.core.time.windows import Panes

EARLIEST = -62_135_596_800_000_000
"""The year 1, before which there are no event times."""


def first_kept(panes: Panes, until: int) -> int:
    """Where the first window starts that ends after `until`: its panes and all later ones are kept."""
    low = until + 1 - panes.size
    return low + (panes.offset - low) % panes.slide


def forgettable(flow: Flow, now: Position, others: Sequence[Position], age: timedelta) -> int | None:
    """Until when windows can be forgotten `age` after they closed for good, from wherever one may go on.

    `others` are the positions that one can go back to. None when that is no further than it was, when a backfill is
    open, or when a position has seen no event.
    """
    windowed = _windowed(flow)
    if now.backfill is not None or not windowed:
        return None
    before = BEGINNING if now.forgotten_until is None else now.forgotten_until
    closed = [_closed(position, _lateness(windowed)) for position in (now, *others)]
    if BEGINNING in closed:
        return None
    jobs = [first for p in others if (first := _first_pane(p)) is not None and first >= before]
    until = min([*(at - micros(age) for at in closed), *jobs])
    earliest = EARLIEST + max(sink.window.panes.size for sink in windowed)
    return until if until > max(before, earliest) else None


def _windowed(flow: Flow) -> list[WindowedSink]:
    return [sink for sink in flow.sinks if isinstance(sink, WindowedSink)]


def _lateness(sinks: Sequence[WindowedSink]) -> int:
    return max(micros(sink.allowed_lateness) for sink in sinks)


def _closed(position: Position, lateness: int) -> int:
    """Windows that end here or earlier take no record of a live batch from this position on; BEGINNING for none."""
    at = position.watermark
    if at == END:
        times = [clock.max_event_time for clock in position.clocks.values() if clock.max_event_time is not None]
        at = max(times, default=BEGINNING)
    return at if at == BEGINNING else at - lateness


def _first_pane(position: Position) -> int | None:
    """Where the windows begin that an open backfill will replace; None without one."""
    spans = position.backfill.panes.values() if position.backfill is not None else ()
    return min((span.first for found in spans for span in found), default=None)


def check_lateness(flow: Flow, position: Position) -> None:
    """Refuses a declaration that lets live records into windows whose state may be gone.

    Raises:
        Incompatible: `allowed_lateness` was raised beyond that.
    """
    until, windowed = position.forgotten_until, _windowed(flow)
    if until is None or position.watermark in (BEGINNING, END):
        return
    for sink in windowed:
        if position.watermark - micros(sink.allowed_lateness) < until:
            raise Incompatible(
                f"{flow.name}: allowed_lateness of {sink.table}, {show_duration(sink.allowed_lateness)}, lets records "
                f"into windows that end before {show_moment(until)}, whose state maintenance has removed",
                fix=f"say at most {show_duration(timedelta(microseconds=position.watermark - until))} for now, or "
                f"build all again from the log: `tidemill rebuild {flow.name}`",
            )


def check_age(flow: Flow, age: timedelta) -> None:
    """Refuses windows that take records for longer than state is kept.

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
    """The position of `then`, to go back to: it remembers what is forgotten by now.

    Raises:
        AmendmentError: from there on, windows would fire whose state may be gone.
    """
    until = now.forgotten_until
    if until is None:
        return then
    windowed, first = _windowed(flow), _first_pane(then)
    fires = [_closed(then, _lateness(windowed))] if windowed and then.watermark != END else []
    if min([*fires, *(() if first is None else (first,))], default=until) < until:
        raise AmendmentError(
            f"{flow.name}: after batch {then.batch_id}, windows that end before {show_moment(until)} would fire "
            "again, and maintenance has removed their state; nothing was moved",
            fix=f"rewind to a batch from which on they stay closed; for older ones `tidemill backfill {flow.name}` "
            f"computes windows from the log, and `tidemill rebuild {flow.name}` all of them",
        )
    return then.forgetting(until)
