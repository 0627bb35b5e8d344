"""What the steps of windows and aggregates are given, checked and made into operators."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.names import checked_column
from tidemill.core.errors import DeclarationError
from tidemill.core.time.times import duration
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.windows import Calendar, Session, Sliding, Tumbling, WindowSpec


def window_by(spec: WindowSpec, allowed_lateness: str | timedelta, start: str, end: str | None) -> op.WindowBy:
    """The operator for these windows, with the columns of their bounds.

    Raises:
        DeclarationError: `spec` is no kind of windows, or one whose end must be published; the lateness is no duration,
            or negative; or a column has no valid name.
    """
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
    window = op.WindowBy(spec=spec, allowed_lateness=lateness, start=start, end=end)
    for column in (start, *window.columns):
        checked_column(column)
    return window


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


def trigger_of(said: str | None, *, windowed: bool) -> Trigger:
    """When rows are published, as it is said or by default."""
    if said is None:
        return Trigger.ON_CLOSE if windowed else Trigger.ON_UPDATE
    try:
        trigger = Trigger(said)
    except ValueError:
        known = " or ".join(f'"{each.value}"' for each in Trigger)
        raise DeclarationError(f"trigger is {known}, found {said!r}") from None
    if trigger.fires_on_close and not windowed:
        raise DeclarationError(
            f'trigger="{said}" would never publish a row: without .window(...), nothing closes',
            fix='leave the trigger out, or say trigger="on_update"',
        )
    return trigger
