"""Which intervals Spark reads where an expression writes one: the units, and how the numbers stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tidemill.core.sql.interval_fields import UNITS, fields_of, interval_name, is_span, written_interval

if TYPE_CHECKING:
    from sqlglot import Token

_TEXTS = ("STRING", "RAW_STRING")
_MONTHS: Mapping[str, int] = {"year": 12, "month": 1}
_MICROSECONDS: Mapping[str, int] = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_WHOLE, _SECONDS = re.compile(r"[+-]?\s*(\d+)"), re.compile(r"[+-]?\s*(\d+)?(\.\d{0,9})?")
_WITH_UNITS = re.compile(r"(?:interval\s+)?(?:[+-]?\s*\d*\.?\d*\s+[a-z]+\s*)+", re.IGNORECASE)
_PART = re.compile(r"([+-]?\s*\d*\.?\d*)\s+([a-z]+)", re.IGNORECASE)
_SHAPES = {"month": r"-(?P<month>\d+)", "hour": r" (?P<hour>\d{1,2})"}
_MOST = {"month": 11, "hour": 23, "minute": 59, "second": 59}
_FORMS = {"year": "1-2", "day": "1 2:3:4", "hour": "2:3:4", "minute": "3:4"}


def fault_of_intervals(tokens: Sequence[Token]) -> str:
    """Why Spark does not read an interval that is written there; empty if it reads all of them."""
    return next(
        (fault for at, token in enumerate(tokens) if _begins(tokens, at, token) for fault in _faults(tokens, at + 1)),
        "",
    )


def _begins(tokens: Sequence[Token], at: int, token: Token) -> bool:
    named = token.token_type.name not in ("IDENTIFIER", *_TEXTS) and token.text.lower() == "interval"
    return named and not (at and tokens[at - 1].text == ".")


def _faults(tokens: Sequence[Token], at: int) -> Iterator[str]:
    """What is wrong about the values and units that follow `interval`."""
    while True:
        signed = at + 1 < len(tokens) and tokens[at].text in ("+", "-") and tokens[at + 1].token_type.name == "NUMBER"
        at += signed
        if at >= len(tokens) or tokens[at].token_type.name not in ("NUMBER", *_TEXTS) or "\\" in tokens[at].text:
            return
        text, unit = tokens[at].text, _word(tokens, at + 1)
        if any(sign.isalpha() for sign in text) and tokens[at].token_type.name in _TEXTS:
            yield from _of_text(text)
            return
        if not unit:
            return
        if _word(tokens, at + 2) == "to":
            yield from _of_span(text, _singular(unit), _singular(_word(tokens, at + 3)))
            return
        yield from _of_value(text, unit)
        at += 2


def _word(tokens: Sequence[Token], at: int) -> str:
    """A word that may be a unit; empty for signs, numbers and words that go on with the expression."""
    if at >= len(tokens) or not tokens[at].text.isalpha() or tokens[at].token_type.name in ("IDENTIFIER", *_TEXTS):
        return ""
    is_plain = tokens[at].token_type.name == "VAR" or _singular(tokens[at].text.lower()) in UNITS
    return tokens[at].text.lower() if is_plain or tokens[at].text.lower() == "to" else ""


def _singular(unit: str) -> str:
    return unit.removesuffix("s")


def _of_text(text: str) -> Iterator[str]:
    if not _WITH_UNITS.fullmatch(text.strip()):
        yield f"`{text}` is no list of numbers with units, such as '1 day 2 hours'"
        return
    for value, unit in _PART.findall(text.strip()):
        yield from _of_value(value, unit.lower())
    if not written_interval(text):
        yield f"`{text}` has months and days, which are intervals of two kinds"


def _of_value(text: str, unit: str) -> Iterator[str]:
    name = _singular(unit)
    if name not in UNITS:
        yield f"an interval has no unit `{unit}`: the units are {', '.join(UNITS)}"
        return
    found = (_SECONDS if name == "second" else _WHOLE).fullmatch(text.strip())
    if found is None or not text.strip():
        yield f"`{text}` is no number of {name}s"
        return
    size = int(found[1] or 0)
    if size * _MONTHS.get(name, 0) >= 2**31 or size * _MICROSECONDS.get(name, 0) >= 2**63:
        yield f"{text} {unit} is longer than an interval can be"


def _of_span(text: str, first: str, last: str) -> Iterator[str]:
    if not is_span(first, last):
        yield f"there is no interval {first} to {last}"
        return
    inner = fields_of(interval_name((first, last)))[1:]
    shape = "".join(_SHAPES.get(field, rf":(?P<{field}>\d{{1,2}})") for field in inner)
    fraction = r"(?:\.\d{1,9})?" if last == "second" else ""
    found = re.fullmatch(rf"[+-]?\d+{shape}{fraction}", text.strip(), re.ASCII)
    if found is None or any(int(found[field]) > _MOST[field] for field in inner):
        yield f"`{text}` is no interval {first} to {last}, which is written like {_FORMS[first]}"
