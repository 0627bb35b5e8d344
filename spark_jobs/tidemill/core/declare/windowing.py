"""What the steps of windows and aggregates are given, checked and made into operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta

from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.columns import WINDOW_COLUMNS
from tidemill.core.declare.firing import Firing
from tidemill.core.declare.guarantees import one_of
from tidemill.core.declare.names import checked_column
from tidemill.core.errors import DeclarationError, shown
from tidemill.core.given import check_flag
from tidemill.core.ordered import triggers as ordered
from tidemill.core.ordered.accumulation import Accumulation
from tidemill.core.ordered.buffers import TumblingBuffer
from tidemill.core.ordered.evictors import Evictor
from tidemill.core.ordered.foldable import sorts
from tidemill.core.ordered.policies import TimePolicy
from tidemill.core.ordered.record_windows import RecordWindows
from tidemill.core.ordered.self_firing import SelfFiring
from tidemill.core.ordered.trigger_parts import no_trigger
from tidemill.core.time.times import duration
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.windows import Calendar, Global, Session, Sliding, Tumbling, WindowSpec


def window_by(
    spec: WindowSpec | SelfFiring,
    allowed_lateness: str | timedelta,
    start: str,
    end: str | None,
    evictor: Evictor | None = None,
) -> op.WindowBy:
    """The operator for these windows, with the columns of their bounds.

    Raises:
        DeclarationError: `spec` is no kind of windows, or one whose end must be published; the lateness is no duration,
            or negative; or a column has no valid name.
    """
    if evictor is not None and not isinstance(evictor, Evictor):
        raise DeclarationError(f"not an evictor: {evictor!r}", fix="write for example CountEvictor(100)")
    if isinstance(spec, SelfFiring):
        if evictor is not None:
            raise DeclarationError(f"{spec}: what they hold follows from their own rule", fix="leave out evictor")
        return _self_firing(spec, allowed_lateness, start, end)
    if isinstance(spec, Global):
        _check_endless(allowed_lateness, start, end)
        return op.WindowBy(spec=spec, allowed_lateness=timedelta(0), start=None, end=None, evictor=evictor)
    if not isinstance(spec, Tumbling | Sliding | Calendar | Session):
        raise DeclarationError(
            f"window takes a kind of windows, found {spec!r}",
            fix='write .window(Tumbling("1 minute")), for example; without windows, leave the step out',
        )
    if isinstance(spec, Session) and end is None:
        raise DeclarationError(
            "sessions have no length of their own, so their end must be published", fix="leave out end=None"
        )
    lateness = duration(allowed_lateness, "allowed_lateness")
    window = op.WindowBy(spec=spec, allowed_lateness=lateness, start=start, end=end, evictor=evictor)
    for column in (start, *window.columns):
        checked_column(column)
    return window


def _self_firing(spec: SelfFiring, allowed_lateness: str | timedelta, start: str, end: str | None) -> op.WindowBy:
    """The operator for windows that say themselves when they fire; a buffer has bounds only if time flushes it."""
    if duration(allowed_lateness, "allowed_lateness"):
        by_time = isinstance(spec, RecordWindows) or sorts(spec)
        why, fix = (
            ("they fire once", "leave it out, and give the input a longer delay: read(..., delay=...)")
            if by_time
            else _ARRIVAL
        )
        raise DeclarationError(f"{spec}: there is no allowed lateness, because {why}", fix=fix)
    timed = isinstance(spec, RecordWindows) or (isinstance(spec, TumblingBuffer) and isinstance(spec.flush, TimePolicy))
    if not timed:
        _check_no_bounds(f"{spec}: such a buffer has no columns for its bounds", start, end)
        return op.WindowBy(spec=spec, allowed_lateness=timedelta(0), start=None, end=None)
    window = op.WindowBy(spec=spec, allowed_lateness=timedelta(0), start=start, end=end)
    for column in (start, *window.columns):
        checked_column(column)
    return window


def _check_endless(allowed_lateness: str | timedelta, start: object, end: object) -> None:
    if duration(allowed_lateness, "allowed_lateness"):
        raise DeclarationError(
            "Global() never ends, so no record is late and there is no allowed lateness",
            fix="leave out allowed_lateness",
        )
    _check_no_bounds("Global() has no columns for its bounds", start, end)


def _check_no_bounds(why: str, start: object, end: object) -> None:
    """Refuse names for the bounds of windows that have none; that the end is left out is true of them, too."""
    for what, said, default in (("start", start, WINDOW_COLUMNS[0]), ("end", end, WINDOW_COLUMNS[1])):
        if said != default and not (what == "end" and said is None):
            raise DeclarationError(f"{why}, but {what} is {shown(said)}", fix=f"leave out {what}")


_ARRIVAL = ("records are taken as they arrive", "leave out allowed_lateness")


def firing_of(trigger: object, firing: Firing, *, windowed: bool) -> Firing | None:
    """What is said of firings; None where windows do not fire by the trigger language.

    What says itself when it fires is not `windowed`.

    Raises:
        DeclarationError: something is said although they do not, or is no choice that there is.
    """
    check_flag(firing.empty_on_time, "empty_on_time")
    check_flag(firing.accept_loss, "accept_loss")
    if firing.accumulation is not None:
        one_of(Accumulation, firing.accumulation, "accumulation")
    if isinstance(trigger, ordered.Trigger):
        return firing
    if firing != Firing():
        said = next(f.name for f in fields(firing) if getattr(firing, f.name) != getattr(Firing(), f.name))
        if not windowed:
            raise DeclarationError(
                f"{said} is about windows of event time with a trigger, and these windows fire by a rule of their own",
                fix=f"leave out {said}",
            )
        here = "there is none here" if trigger is None else f"trigger={trigger!r} is none of them"
        raise DeclarationError(
            f"{said} is about windows that fire by a trigger such as Repeatedly(AfterCount(100)), and {here}",
            fix=f"leave out {said}, or write for example trigger=Repeatedly(AfterCount(100))",
        )
    return None


def default_of(spec: WindowSpec | SelfFiring) -> Trigger | None:
    """When windows of this kind are published if nothing is said; None if they say it themselves."""
    if isinstance(spec, SelfFiring):
        return None
    return Trigger.ON_UPDATE if isinstance(spec, Global) else Trigger.ON_CLOSE


def aggregated_by(aggregates: Mapping[str, Aggregate]) -> op.AggregateBy:
    """The operator for these aggregates, by the columns that they give.

    Raises:
        DeclarationError: there is no aggregate, one is something else, or a column has no valid name.
    """
    if not aggregates:
        raise DeclarationError("aggregate needs at least one aggregate", fix="for example views=Count()")
    for column, aggregate in aggregates.items():
        checked_column(column)
        if not isinstance(aggregate, Aggregate):
            raise DeclarationError(f"`{column}` is not an aggregate: {aggregate!r}", fix='write Sum("x"), Count(), ...')
    return op.AggregateBy(aggregates)


def trigger_of(said: str | ordered.Trigger | None, default: Trigger | None) -> Trigger | ordered.Trigger | None:
    """When rows are published, as it is said or by `default`: None if windows say it themselves."""
    if said is None:
        return default
    if default is None:
        raise DeclarationError(
            f"trigger={said!r}, but these windows say themselves when they fire",
            fix="leave out trigger, or choose another kind of windows",
        )
    if isinstance(said, ordered.Trigger):
        return said
    try:
        trigger = Trigger(said)
    except ValueError:
        known = " or ".join(f'"{each.value}"' for each in Trigger)
        error = no_trigger(said, ordered.Trigger)
        raise DeclarationError(
            f"trigger is {known}, or one of the trigger language: {error.message}", fix=error.fix
        ) from None
    if trigger.fires_on_close and not default.fires_on_close:
        raise DeclarationError(
            f'trigger="{said}" would never publish a row: without .window(...), nothing closes',
            fix='leave the trigger out, or say trigger="on_update"',
        )
    return trigger
