"""Which texts Spark takes as patterns of times, time zones, encodings, days and units. In doubt, it takes a text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby

_MOST = {
    **dict.fromkeys("aF", 1),
    **dict.fromkeys("dhHkKms", 2),
    "D": 3,
    **dict.fromkeys("GMLQqEz", 4),
    **dict.fromkeys("XxZ", 5),
    "y": 6,
    "S": 9,
}
_EXACTLY: Mapping[str, tuple[int, ...]] = {"V": (2,), "v": (1, 4), "O": (1, 4)}
_ONLY_WRITTEN = "QqEF"
"""The letters of patterns with which times are written, and cannot be read."""

_QUOTED = re.compile(r"'[^']*'")
_AREAS = (
    *("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Brazil", "Canada", "Chile"),
    *("Etc", "Europe", "Indian", "Mexico", "Pacific", "SystemV", "US"),
)
_ZONES = frozenset(
    [
        "ACT",
        "AET",
        "AGT",
        "ART",
        "AST",
        "BET",
        "BST",
        "CAT",
        "CET",
        "CNT",
        "CST",
        "CST6CDT",
        "CTT",
        "Cuba",
        "EAT",
        "ECT",
        "EET",
        "EST",
        "EST5EDT",
        "Egypt",
        "Eire",
        "GB",
        "GB-Eire",
        "GMT",
        "GMT0",
        "Greenwich",
        "HST",
        "Hongkong",
        "IET",
        "IST",
        "Iceland",
        "Iran",
        "Israel",
        "JST",
        "Jamaica",
        "Japan",
        "Kwajalein",
        "Libya",
        "MET",
        "MIT",
        "MST",
        "MST7MDT",
        "NET",
        "NST",
        "NZ",
        "NZ-CHAT",
        "Navajo",
        "PLT",
        "PNT",
        "PRC",
        "PRT",
        "PST",
        "PST8PDT",
        "Poland",
        "Portugal",
        "ROC",
        "ROK",
        "SST",
        "Singapore",
        "Turkey",
        "UCT",
        "UT",
        "UTC",
        "Universal",
        "VST",
        "W-SU",
        "WET",
        "Z",
        "Zulu",
    ]
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?[+-](\d{1,2})(?::?\d{1,2}){0,2}")
_MOST_HOURS = 18
_ENCODINGS = ("US-ASCII", "ISO-8859-1", "UTF-8", "UTF-16BE", "UTF-16LE", "UTF-16", "UTF-32")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DATES = ("year", "yyyy", "yy", "quarter", "month", "mon", "mm", "week")
_TIMES = (*_DATES, "day", "dd", "hour", "minute", "second", "millisecond", "microsecond")


def fault_of_pattern(pattern: str, *, read: bool) -> str:
    """Why Spark has no such pattern of dates and times; empty if it may have. `read` says that texts are read by it."""
    plain = _QUOTED.sub("", pattern)
    if "'" in plain:
        return "a quote has no partner"
    if found := next((sign for sign in plain if sign in "#{}"), ""):
        return f"`{found}` has no meaning"
    depth = 0
    for sign in plain:
        depth += (sign == "[") - (sign == "]")
        if depth < 0:
            return "`]` closes nothing"
    runs = ((letter, len(list(run))) for letter, run in groupby(plain))
    return next((fault for letter, size in runs if (fault := _fault_of_run(letter, size, read))), "")


def _fault_of_run(letter: str, size: int, read: bool) -> str:
    if not (letter.isascii() and letter.isalpha()):
        return ""
    if letter in "Yuewc":
        return f"`{letter}` has no meaning; the year is y, the day of the month d"
    if letter not in _MOST and letter not in _EXACTLY:
        return f"`{letter}` has no meaning"
    if size not in _EXACTLY.get(letter, (size,)) or size > _MOST.get(letter, size):
        return f"`{letter}` cannot come {size} times"
    return f"`{letter}` is only for writing" if read and letter in _ONLY_WRITTEN else ""


def fault_of_zone(zone: str) -> str:
    """Why Spark has no such time zone; empty if it may have."""
    offset = _OFFSET.fullmatch(zone)
    area, slash, _ = zone.partition("/")
    known = zone in _ZONES or (slash and area in _AREAS) or (offset is not None and int(offset[1]) <= _MOST_HOURS)
    return "" if known else "a time zone is a name such as Europe/Berlin or UTC, or an offset such as +01:00"


def fault_of_encoding(name: str) -> str:
    """Why Spark has no such encoding; empty if it has."""
    return "" if name.upper() in _ENCODINGS else f"there are {', '.join(_ENCODINGS)}"


def fault_of_day(name: str) -> str:
    """Why Spark has no such day of the week; empty if it has."""
    known = {short for day in _DAYS for short in (day, day[:3], day[:2])}
    return "" if name.strip().lower() in known else "a day is written as MO, MON or MONDAY"


def fault_of_unit(name: str, *, time: bool) -> str:
    """Why Spark cuts no date, or with `time` no timestamp, to such a unit; empty if it does."""
    units = _TIMES if time else _DATES
    return "" if name.lower() in units else f"there are {', '.join(units)}"
