"""What a table of firings cannot be, although each of its parts is valid."""

from __future__ import annotations

from datetime import timedelta

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.declare.operators import WithColumns
from tidemill.core.errors import DeclarationError
from tidemill.core.ordered.assigners import Sessions
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.policies import MOST_BY_TIME, TimePolicy
from tidemill.core.ordered.trigger_laws import may_fire_again
from tidemill.core.time.times import micros, show_duration


def check_firings(where: str, sink: FiringSink, every: timedelta) -> None:
    """Refuse firings that cannot be taken back, never come, come too often, or break the primary key of their contract.

    A batch starts `every` so often.

    Raises:
        DeclarationError: the text says which, and what to do.
    """
    _check_operation(where, sink)
    _check_attribute(where, sink)
    if sink.retracts:
        _check_exact(where, sink)
    _check_timeout(where, sink, every)
    _check_keys(where, sink)
    _check_period(where, sink, every)
    if sink.contract.primary_key and not sink.replaces:
        _check_key(where, sink)


def _check_operation(where: str, sink: FiringSink) -> None:
    if sink.retracts and sink.told.operation is None:
        raise DeclarationError(
            f"{where}: rows that take earlier ones back look like others without a column that says so",
            fix='name one: operation="operation"',
        )
    if sink.replaces and sink.told.operation is not None:
        raise DeclarationError(
            f"{where}: a firing updates the row of the firing before, so none is deleted and there is no operation",
            fix='leave out operation, or say accumulation="accumulating_and_retracting"',
        )


def _check_attribute(where: str, sink: FiringSink) -> None:
    """Refuse a policy that looks at a key: it has one value in all records that are compared."""
    keys = {key.lower() for key in sink.keys}
    for column, what in (
        (sink.attribute, "no record differs from another in it"),
        (sink.marker, "markers and records are never in one buffer"),
    ):
        if column is not None and column.lower() in keys:
            raise DeclarationError(
                f"{where}: `{column}` is what windows look at and a key as well, so {what}",
                fix=f"leave `{column}` out of .key_by(...), or look at another column",
            )


def _check_exact(where: str, sink: FiringSink) -> None:
    drawn = [name for name, aggregate in sink.aggregates.items() if aggregate.approximate_each_time]
    if drawn:
        kind = type(sink.aggregates[drawn[0]]).__name__
        raise DeclarationError(
            f"{where}: `{drawn[0]}` is {kind}, which may give another value each time it is computed, so a row that "
            "takes an earlier one back need not be equal to it",
            fix='say accumulation="accumulating_and_replacing", which updates the row, or publish '
            f"`{drawn[0]}` in a table of its own",
        )


def _check_key(where: str, sink: FiringSink) -> None:
    """Refuse a primary key in which several rows agree: windows and keys do not tell firings apart."""
    named = set(sink.contract.primary_key)
    made = {name for step in sink.results if isinstance(step, WithColumns) for name in step.columns}
    known = {*sink.bounds, *sink.keys, *sink.told.names} - made
    several = _fires_again(sink)
    wanted = [] if not sink.bounds or named & set(sink.bounds) else [sink.bounds[0]]
    wanted += [key for key in sink.keys if key not in named]
    if several:
        told = (sink.told.index, sink.told.operation) if sink.retracts else (sink.told.index,)
        wanted += [column for column in told if column is not None and column not in named]
    nameless = several and sink.told.index is None
    if not named <= known or not (wanted or nameless):
        return
    file = sink.contract.source or sink.contract.name
    raise DeclarationError(
        f"{where}: the primary key of {file} is ({', '.join(sink.contract.primary_key)}), but each firing is a row: "
        f"{'several firings of one window and key' if several else 'those of other windows or keys'} would agree in it",
        fix=_unique(sink, wanted, nameless=nameless),
    )


def _unique(sink: FiringSink, wanted: list[str], *, nameless: bool) -> str:
    if nameless and not isinstance(sink.window, EventWindows):
        return "remove primaryKey: the firings of a buffer have no column that tells them apart"
    columns = [*wanted, "nth"] if nameless else wanted
    first = 'count the firings with index="nth", and ' if nameless else ""
    return f"{first}set primaryKey: true at {', '.join(columns)} as well, or nowhere"


def _fires_again(sink: FiringSink) -> bool:
    """Whether a window of a key may have several rows."""
    match sink.window:
        case TumblingBuffer(flush=flush):
            return not isinstance(flush, TimePolicy)
        case SlidingBuffer():
            return True
        case EventWindows(windows=Sessions()) as sessions if sessions.lateness or not sink.waits_for_watermark:
            # A session that has fired may become part of another one with the same start.
            return True
        case EventWindows() as windows:
            return may_fire_again(windows.trigger, takes_late=windows.lateness > 0)
        case _:
            return False


def _check_timeout(where: str, sink: FiringSink, every: timedelta) -> None:
    """Refuse to forget keys that may have a record in each batch.

    Raises:
        DeclarationError: keys are forgotten after at most the time from one batch to the next.
    """
    if sink.timeout is not None and sink.timeout <= micros(every):
        raise DeclarationError(
            f"{where}: idle_timeout of {sink.declared} is not longer than the time from one batch to the next, "
            f"{show_duration(every)}: keys with a record in each batch would be forgotten in between",
            fix="write a longer idle_timeout: longer than pauses and outages, too, that a key must survive",
        )


def _check_keys(where: str, sink: FiringSink) -> None:
    """Refuse to bound the number of keys where all records have the same one.

    Raises:
        DeclarationError: there is no key.
    """
    if sink.most_keys is not None and not sink.keys:
        raise DeclarationError(
            f"{where}: most_keys is {sink.most_keys:,}, and all records have the same key",
            fix="leave out most_keys, or write key_by(...) before window(...)",
        )


def _check_period(where: str, sink: FiringSink, every: timedelta) -> None:
    """Refuse to fire very often for each key in each batch, with or without new records.

    Raises:
        DeclarationError: the clock of batches passes too many multiples of a period from one batch to the next.
    """
    match sink.declared:
        case TumblingBuffer(flush=TimePolicy(uses_clock=True) as policy, emit_empty=True):
            pass
        case SlidingBuffer(trigger=TimePolicy() as policy):
            pass
        case _:
            return
    if micros(every) > policy.micros * MOST_BY_TIME:
        raise DeclarationError(
            f"{where}: by {policy} a key fires {micros(every) // policy.micros:,} times from one batch to the next, "
            f"{show_duration(every)}, of which it brings records once",
            fix=f"write a longer time: at most {MOST_BY_TIME:,} fit between two batches",
        )
