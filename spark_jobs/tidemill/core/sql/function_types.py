"""What Spark's functions give, and which of their arguments it converts from a text, as far as that is certain."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.core.sql.function_signatures import SIGNATURES
from tidemill.core.sql.functions import CONVERSIONS

_WANTED: Mapping[str, str] = {
    **dict.fromkeys(("number", "distance", "quantity", "summed", "whole", "addend", "factor"), "number"),
    **dict.fromkeys(("moment", "dated", "clock"), "moment"),
    "boolean": "boolean",
}
"""Words of signatures, and what Spark makes of a text there."""

_READING = ("unix_timestamp", "to_unix_timestamp")
"""Functions that read a text by a pattern, and cast none."""

_UNITS_FIRST: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("dateadd", "date_add", "timestampadd"), ("", "number", "moment")),
    **dict.fromkeys(("datediff", "date_diff", "timestampdiff"), ("", "moment", "moment")),
}
_OF_PARTS = ("make_timestamp", "make_timestamp_ltz", "make_timestamp_ntz")
_PARTS = 6
_INTS_AT = {
    (1,): "left right repeat lpad rpad add_months get",
    (0,): "space elt",
    (2,): "locate split_part substring_index regexp_extract regexp_extract_all regexp_instr",
    (1, 2): "substring substr slice conv",
    (2, 3): "overlay",
    (0, 1, 2): "make_date",
}
_GIVES_ITS_ARGUMENTS = "coalesce ifnull nvl greatest least min max"
_COMPARES = "equal_null nullif coalesce ifnull nvl array"


def needed(name: str, place: int, count: int) -> str:
    """What Spark makes of a text that is argument `place` of `count`: "number", "moment" or "boolean"; or empty."""
    if count == len(_UNITS_FIRST.get(name, ())):
        return _UNITS_FIRST[name][place]
    if name in ("date_part", "datepart") or name == "convert_timezone":
        return "moment" if place == count - 1 > 0 else ""
    if name.removeprefix("try_") in _OF_PARTS:
        return "number" if place < _PARTS <= count else ""
    if name == "percentile":
        return "number"
    signature = SIGNATURES.get(name)
    if signature is None or name in (*_READING, *CONVERSIONS) or not signature.takes(count):
        return ""
    return _WANTED.get(signature.word(place), "")


INTS_AT = {name: places for places, names in _INTS_AT.items() for name in names.split()}
"""Functions, and the places of their arguments that Spark casts to an int, if they are other numbers."""

GIVES_TEXT_OF_TEXT = frozenset(("left", "right", "lpad", "rpad", "reverse", "concat"))
"""Functions whose result is a text if their arguments are texts or numbers; they take other values, too."""

GIVES_ITS_ARGUMENTS = frozenset(_GIVES_ITS_ARGUMENTS.split())
"""Functions whose result has the common type of their arguments."""

COMPARES = frozenset(_COMPARES.split())
"""Functions that give all their arguments one type."""

ITEMS_AT = {
    **dict.fromkeys(("exists", "filter", "forall", "transform"), (0,)),
    **dict.fromkeys(("aggregate", "reduce"), (1,)),
    "array_sort": (0, 1),
}
"""Functions, and the places of those variables of their lambda function that are items of their first argument."""
