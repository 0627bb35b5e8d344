"""Why records are rejected: a stable code, the field it is about, and a detail that holds what was found.

A reason is stored as one text, `CODE(FIELD): DETAIL` or `CODE: DETAIL`. For a broken row rule, the text is the name of
the rule. Codes and fields come from here and from contracts, never from records, so there are only so many to count;
details are data. Older quarantine tables and ledgers hold details alone: the patterns below find their codes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidemill.core.sql.text import text_literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One kind of fault. `pattern` is a regular expression that matches the beginning of its details."""

    name: str
    meaning: str
    pattern: str


CODES = (
    Code(name="tombstone", meaning="the record has no value", pattern=r"tombstone"),
    Code(name="empty", meaning="the value has no bytes, or only blanks", pattern=r"empty value"),
    Code(name="not_utf8", meaning="the value is no UTF-8 text", pattern=r"not UTF-8"),
    Code(
        name="wrong_value",
        meaning="the text or value of a field is not of its type, or not what the format has there",
        pattern=r"`.+?`: expected |expected one line|expected the end of the line",
    ),
    Code(name="too_large", meaning="a number does not fit its type", pattern=r"`.+?`: number \S+ does not fit "),
    Code(name="null", meaning="a required field is null", pattern=r"`.+?`: required, but null"),
    Code(name="missing", meaning="a required field is not there", pattern=r"`.+?`: required, but missing"),
    Code(name="unknown_field", meaning="a field that the contract does not have", pattern=r"unknown field "),
    Code(
        name="malformed_json",
        meaning="the value is no JSON",
        pattern=r"malformed JSON|unpaired surrogate",
    ),
    Code(name="cut_json", meaning="the JSON ends early", pattern=r"cut JSON"),
    Code(name="not_an_object", meaning="the JSON is no object", pattern=r"expected a JSON object"),
    Code(name="too_deep", meaning="the JSON is nested too deep", pattern=r"nested deeper than "),
    Code(
        name="misfit",
        meaning="the JSON does not fit the contract otherwise",
        pattern=r"does not fit the contract|(?:Expected|Object|Integer|Number|Invalid) ",
    ),
    Code(
        name="wrong_columns",
        meaning="the line has more or fewer columns than the contract",
        pattern=r"expected \d+ columns?, found ",
    ),
    Code(name="wrong_quotes", meaning="quotes or line breaks of CSV are out of place", pattern=r"column \d+: "),
    Code(name="no_event_time", meaning="the event time is null", pattern=r"no event time"),
    Code(
        name="future",
        meaning="the event time is further ahead than `future_tolerance`",
        pattern=r"event time in the future",
    ),
    Code(
        name="future_watermark",
        meaning="the watermark that the record tells is further ahead than `future_tolerance`",
        pattern=r"watermark in the future",
    ),
    Code(
        name="early_watermark",
        meaning="windows of the told watermark would begin before year 1",
        pattern=r"watermark too e",
    ),
    Code(name="too_early", meaning="windows of the event time would begin before year 1", pattern=r"event time too ea"),
    Code(name="diverted", meaning="a person put the whole batch aside", pattern=r"batch diverted by "),
)
"""Every code except those of row rules, which have the names that their contract gives them."""

_NAMES = "|".join(code.name for code in CODES)
_FIELD = r"[^()\n]{1,200}"
_STORED = rf"^((?:{_NAMES})(?:\({_FIELD}\))?): "
_CODED = re.compile(_STORED)
_DETAILS = re.compile("|".join(f"(?P<{code.name}>{code.pattern})" for code in CODES), re.DOTALL)
_OF_FIELD = re.compile(r"`(.+?)`: (?:expected|number|required)", re.DOTALL)
_INDEX = re.compile(r"\[\d+\]")


def stored_reason(detail: str) -> str:
    """The text that is stored for a decoder's `detail`: code, field and detail."""
    found = sort_of(detail)
    return detail if found == detail else f"{found}: {detail}"


def sort_of(reason: str) -> str:
    """What a stored reason counts as: `CODE(FIELD)`, `CODE`, or the name of the broken rule."""
    stored = _CODED.match(reason)
    if stored is not None:
        return stored[1]
    found = _DETAILS.match(reason)
    if found is None or found.lastgroup is None:
        return reason
    field = _INDEX.sub("[]", match[1]) if (match := _OF_FIELD.match(reason)) else ""
    return f"{found.lastgroup}({field})" if re.fullmatch(_FIELD, field) else found.lastgroup


def detail_of(reason: str) -> str:
    """The detail of a stored reason; empty for a rule."""
    stored = _CODED.match(reason)
    if stored is not None:
        return reason[stored.end() :]
    return "" if sort_of(reason) == reason else reason


def tally_reasons(counts: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    """How many records have each kind of reason, from pairs of a reason's text and its count."""
    found: Counter[str] = Counter()
    for reason, count in counts:
        found[sort_of(reason)] += count
    return dict(found)


def sort_expression(reason: str) -> str:
    """Spark SQL that gives the kind of a stored reason. The reason must have a code: older texts stay unchanged."""
    pattern = text_literal(f"(?s){_STORED}.*")
    return f"regexp_replace({reason}, {pattern}, '$1')"
