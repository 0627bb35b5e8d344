"""Which texts Spark can cast to which types. In doubt, it can."""

from __future__ import annotations

import re
from datetime import date

from tidemill.core.contract.known_types import Family, Known, Number, family
from tidemill.core.contract.schema import Scalar

_BOOLEANS = ("t", "true", "y", "yes", "1", "f", "false", "n", "no", "0")
_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[df]?|[+-]?inf(inity)?|nan", re.IGNORECASE)
_DAY = re.compile(r"[+-]?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?")
_WORD = re.compile(r"(epoch|now|today|yesterday|tomorrow)\b.*", re.IGNORECASE)
_TIME = re.compile(r"T?\d{1,2}:.*")


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
                _is_day(text)
                or _WORD.fullmatch(text) is not None
                or (wanted is Scalar.TIMESTAMP and _TIME.fullmatch(text) is not None)
            )
        case _:
            return True


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
