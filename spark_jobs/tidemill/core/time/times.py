"""Moments and durations: whole microseconds since 1970-01-01T00:00:00Z, and how people write them.

Rules compute with integers of microseconds, so that nothing is rounded. The public API takes `timedelta` or text such
as "10 seconds", and `datetime` with a time zone.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tidemill.core.errors import DeclarationError, shown

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

LONGEST = timedelta(days=365_000)
"""The longest duration: present moments plus or minus it are still dates."""

_MOST_DIGITS = 20
_SHOWN = 60

_UNITS = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": 1_000_000,
    "s": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "m": 60_000_000,
    "hour": 3_600_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "d": 86_400_000_000,
    "week": 604_800_000_000,
}
_DURATION = re.compile(r"\s*(?P<sign>-?)\s*(?P<count>[0-9]+)\s*(?P<unit>[a-z]+?)(?P<plural>s?)\s*", re.IGNORECASE)


def duration(value: str | timedelta, what: str = "") -> timedelta:
    """A duration from text: a whole number and a unit, such as "90 seconds", "1 hour" or "250 ms".

    `what` names it in the error.

    Raises:
        DeclarationError: the text is not such a duration, or names months or years, which have no
            fixed length; or the duration is negative, or longer than `LONGEST`.
    """
    found = signed_duration(value, what)
    if found < timedelta(0):
        raise DeclarationError(
            f"{what or 'a duration'} must not be negative, found {_written(value)}", fix="leave out the minus"
        )
    return found


def positive_duration(value: str | timedelta, what: str) -> timedelta:
    """A duration as in `duration`, but above zero."""
    found = signed_duration(value, what)
    if found <= timedelta(0):
        raise DeclarationError(
            f"{what} must be longer than nothing, found {_written(value)}", fix='write for example "1 minute"'
        )
    return found


def signed_duration(value: str | timedelta, what: str = "") -> timedelta:
    """A duration as in `duration`, which may be below zero, such as "-8 hours"."""
    if isinstance(value, timedelta):
        if abs(value) > LONGEST:
            raise _too_long(what, value)
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    unit = _unit(match["unit"].lower(), match["plural"].lower()) if match else None
    if match is None or unit is None:
        raise DeclarationError(
            f"{what}{': ' if what else ''}not a duration: {shown(value)}",
            fix='write a whole number and a unit, as in "10 seconds": us, ms, seconds (s), minutes (min, m), '
            "hours (h), days (d), weeks",
        )
    if len(match["count"]) > _MOST_DIGITS or int(match["count"]) * unit > micros(LONGEST):
        raise _too_long(what, value)
    return timedelta(microseconds=int(match["sign"] + match["count"]) * unit)


def _written(value: str | timedelta) -> str:
    """A duration as it was written, or as people would write it."""
    return show_duration(value) if isinstance(value, timedelta) else shown(value)


def _too_long(what: str, value: str | timedelta) -> DeclarationError:
    said = value if len(str(value)) <= _SHOWN else f"{str(value)[:_SHOWN]}..."
    return DeclarationError(f"{what or 'a duration'} is at most {LONGEST.days:,} days (a thousand years), found {said}")


def _unit(name: str, plural: str) -> int | None:
    return _UNITS.get(name + plural) or _UNITS.get(name)


def micros(value: datetime | timedelta) -> int:
    """A moment as microseconds since 1970, or a duration as microseconds.

    Raises:
        ValueError: the moment has no time zone.
    """
    if isinstance(value, timedelta):
        return value // MICROSECOND
    if value.tzinfo is None:
        raise ValueError(f"a moment without a time zone: {value.isoformat()}")
    return (value - EPOCH) // MICROSECOND


UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of a record if the log does not know it."""


def moment(value: int) -> datetime:
    """The moment `value` microseconds after 1970, in UTC.

    Raises:
        OverflowError: the moment lies outside the years 1 to 9999.
    """
    return EPOCH + value * MICROSECOND


FIRST, LAST = micros(datetime.min.replace(tzinfo=UTC)), micros(datetime.max.replace(tzinfo=UTC))
"""The first and the last moment with a date, in microseconds since 1970."""


def nearest_moment(value: int) -> datetime:
    """The moment `value` microseconds after 1970; outside the years 1 to 9999, the nearest moment in them.

    Producers of a log may give their records any time.
    """
    return moment(min(max(value, FIRST), LAST))


def show_moment(value: int | datetime) -> str:
    """A moment as people read it, in UTC: `2026-03-01 12:00:00`, with a fraction only if there is one.

    `value` is a datetime, or microseconds since 1970. Commands and forms accept this text where they want a moment.
    """
    at = (moment(value) if isinstance(value, int) else value).astimezone(UTC)
    return at.replace(microsecond=0, tzinfo=None).isoformat(" ") + (f".{at:%f}" if at.microsecond else "")


def show_clock(at: datetime) -> str:
    """A moment for people, in UTC, to the second."""
    return show_moment(at.replace(microsecond=0))


def show_duration(value: timedelta) -> str:
    """A duration as people write it, in the largest unit that divides it."""
    count = micros(value)
    for name in ("week", "day", "hour", "minute", "second", "ms"):
        if count and count % _UNITS[name] == 0:
            number = count // _UNITS[name]
            plural = "" if abs(number) == 1 or name == "ms" else "s"
            return f"{number} {name}{plural}"
    return f"{count} us" if count else "0 seconds"
