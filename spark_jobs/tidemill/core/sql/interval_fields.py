"""Which fields the intervals of Spark SQL have: an interval of days and hours has no minutes."""

from __future__ import annotations

import re
from collections.abc import Iterable

_KINDS = (("year", "month"), ("day", "hour", "minute", "second"))
"""The fields of an interval of months, and those of one of days or less; from the longest to the shortest."""

_UNITS = {
    **{field: field for kind in _KINDS for field in kind},
    "week": "day",
    "millisecond": "second",
    "microsecond": "second",
}
UNITS = tuple(_UNITS)
"""The units with which intervals are written, in the singular."""

_WORD = re.compile(r"[a-z]+")


def interval_name(fields: Iterable[str]) -> str:
    """The name of the interval that has these fields and those between them; empty if there is none."""
    found = _from_first_to_last(set(fields))
    return "" if not found else f"interval {found[0]}" if len(found) == 1 else f"interval {found[0]} to {found[-1]}"


def fields_of(name: str) -> tuple[str, ...]:
    """The fields of an interval, by its name: `interval day to minute` has day, hour and minute. Others have none."""
    return _from_first_to_last(_words(name))


def is_span(first: str, last: str) -> bool:
    """Whether there is an interval from a field to a shorter one."""
    return first != last and interval_name((first, last)) == f"interval {first} to {last}"


def written_interval(text: str) -> str:
    """The name of an interval that is written with these units; empty if there is none."""
    return interval_name(_words(text))


def joined_intervals(one: str, other: str) -> str:
    """The name of the interval that has the fields of both; empty if there is none."""
    return interval_name((*fields_of(one), *fields_of(other)))


def _from_first_to_last(named: set[str]) -> tuple[str, ...]:
    """The fields of one kind of interval from the longest that is named to the shortest."""
    kind = next((each for each in _KINDS if named and named <= set(each)), ())
    places = [place for place, field in enumerate(kind) if field in named]
    return kind[places[0] : places[-1] + 1] if places else ()


def _words(text: str) -> set[str]:
    """The fields that a text names, by any of their units and in the plural."""
    singular = (word.removesuffix("s") for word in _WORD.findall(text.lower()))
    return {_UNITS[word] for word in singular if word in _UNITS}
