"""The kinds of values that Spark SQL has, by letters: tables of functions and operators are written with them."""

from __future__ import annotations

from collections.abc import Iterable

KINDS = {
    "s": "string",
    "t": "tinyint",
    "h": "smallint",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "x": "double",
    "d": "decimal",
    "b": "boolean",
    "D": "date",
    "T": "timestamp",
    "N": "timestamp_ntz",
    "Z": "time",
    "y": "binary",
    "a": "array",
    "m": "map",
    "o": "struct",
    "k": "variant",
    "n": "void",
    "Y": "interval year to month",
    "V": "interval day to second",
    "C": "interval",
}
"""Letters, and the name of the type in Spark SQL. An interval is one of months, of microseconds, or of both."""

_SHOWN = {"n": "NULL", "Y": "interval of months", "V": "interval of days or less", "C": "interval"}
_WITH_AN = "aeio"


def shown(letter: str) -> str:
    """A kind as messages call it, for example "an int"."""
    name = _SHOWN.get(letter, KINDS[letter])
    return name if letter == "n" else f"{'an' if name[0] in _WITH_AN else 'a'} {name}"


def listed(letters: Iterable[str]) -> str:
    """Kinds as messages list them, for example "a date, a timestamp or a string"; NULL is left out."""
    *others, last = [shown(letter) for letter in dict.fromkeys(letters) if letter != "n"] or ["nothing"]
    return f"{', '.join(others)} or {last}" if others else last
