"""Which texts Spark can cast to which types. In doubt, it can."""

from __future__ import annotations

import re
from datetime import date

from tidemill.core.contract.known_types import Family, Known, Number, family
from tidemill.core.contract.schema import Scalar
from tidemill.core.sql.written_values import fault_of_zone

_BOOLEANS = ("t", "true", "y", "yes", "1", "f", "false", "n", "no", "0")
_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[df]?|[+-]?inf(inity)?|nan", re.IGNORECASE)
_DAY = re.compile(r"[+-]?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?")
_WORD = re.compile(r"(epoch|now|today|yesterday|tomorrow)\b.*", re.IGNORECASE)
_TIME = re.compile(r"T?\d{1,2}:.*")
_CLOCK = re.compile(r"[+-]?\d+-\d+-\d+[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.\d*)?)?(\D.*)?")
_LAST_HOUR, _LAST_MINUTE = 23, 59


def is_castable(text: str, wanted: Known) -> bool:
    """Whether Spark may be able to cast a text to a type."""
    text = text.strip()
    match family(wanted):
        case Family.NUMBER:
            whole = wanted in (Number.WHOLE, Scalar.INTEGER, Scalar.LONG)
            return (_WHOLE if whole else _NUMBER).fullmatch(text) is not None
        case Family.BOOLEAN:
            return text.lower() in _BOOLEANS
        case Family.MOMENT:
            # Another check refuses words for the clock, with its own reason.
            return (
                (_is_day(text) and (wanted is not Scalar.TIMESTAMP or _has_time(text)))
                or _WORD.fullmatch(text) is not None
                or (wanted is Scalar.TIMESTAMP and _TIME.fullmatch(text) is not None)
            )
        case _:
            return True


def _has_time(text: str) -> bool:
    """Whether the time that may follow a day is one, and its zone, too."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return True
    hour, minute, second = (int(part or 0) for part in found.groups()[:3])
    zone = (found[4] or "").strip()
    return hour <= _LAST_HOUR and max(minute, second) <= _LAST_MINUTE and not (zone and fault_of_zone(zone))


def _is_day(text: str) -> bool:
    found = _DAY.fullmatch(text)
    if found is None:
        return False
    year, month, day = (int(part or 1) for part in found.groups())
    try:
        date(year if 1 <= year <= 9999 else 2000, month, day)
    except ValueError:
        return False
    return True
