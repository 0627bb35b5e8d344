"""Refuses constants with which a call or a division fails, or is null, for every record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from tidemill.core.contract.constant_texts import written_text
from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.contract.option_rules import check_options
from tidemill.core.contract.written_formats import check_formats
from tidemill.core.errors import DeclarationError
from tidemill.core.sql import written_values as of

_ZERO_AT = {"element_at": 1, "try_element_at": 1, "split_part": 2, "slice": 1, "array_insert": 1}
_DIVIDING: Mapping[type[exp.Expr], str] = {exp.Div: "try_divide", exp.IntDiv: "try_divide", exp.Mod: "try_mod"}
_CALLS = {"mod": "try_mod", "pmod": "try_mod"}


def _reads(text: str) -> str:
    return of.fault_of_pattern(text, read=True)


def _writes(text: str) -> str:
    return of.fault_of_pattern(text, read=False)


_TEXTS: Mapping[tuple[str, int], tuple[str, Callable[[str], str]]] = {
    **{(name, 1): ("pattern", _writes) for name in ("date_format", "from_unixtime")},
    **{
        (name, 1): ("pattern", _reads)
        for name in (
            *("to_date", "try_to_date", "to_timestamp", "try_to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz"),
            *("unix_timestamp", "to_unix_timestamp"),
        )
    },
    **{(name, 1): ("time zone", of.fault_of_zone) for name in ("from_utc_timestamp", "to_utc_timestamp")},
    ("convert_timezone", 0): ("time zone", of.fault_of_zone),
    ("make_timestamp", 6): ("time zone", of.fault_of_zone),
    **{(name, 1): ("encoding", of.fault_of_encoding) for name in ("encode", "decode")},
    ("next_day", 1): ("day of the week", of.fault_of_day),
    ("trunc", 1): ("unit", lambda text: of.fault_of_unit(text, time=False)),
    ("date_trunc", 0): ("unit", lambda text: of.fault_of_unit(text, time=True)),
}
"""Functions and the places of their arguments, what a text means there, and why it cannot mean it."""


def check_written(typed: TypedTree, node: exp.Expr, expression: str) -> None:
    """Refuse a constant that cannot be right, whatever a record has.

    Raises:
        DeclarationError: something is divided by 0, there is no item 0, or a text is no pattern, zone, unit or format.
    """
    if type(node) in _DIVIDING and _is_zero(node.expression):
        raise _division(node, _DIVIDING[type(node)], expression)
    if not isinstance(node, exp.Anonymous):
        return
    name, arguments = node.name.lower(), list(node.expressions)
    if name in _CALLS and len(arguments) == 2 and _is_zero(arguments[1]):
        raise _division(node, _CALLS[name], expression)
    _check_index(typed, name, arguments, expression)
    check_formats(typed, name, arguments, expression)
    check_options(name, arguments, expression)
    for (called, place), (meaning, fault_of) in _TEXTS.items():
        # With more arguments, `decode` compares values.
        if called == name and place < len(arguments) and not (name == "decode" and len(arguments) > 2):
            _check_text(name, arguments[place], meaning, fault_of, expression)


def _check_index(typed: TypedTree, name: str, arguments: Sequence[exp.Expr], expression: str) -> None:
    place = _ZERO_AT.get(name, len(arguments))
    first = typed.exact(arguments[0]) if arguments else None
    if place >= len(arguments) or not _is_zero(arguments[place]) or (first is not None and first.letter == "m"):
        return
    # Whether it is an array or a map counts for one function; the others take no map.
    if first is None and name in ("element_at", "try_element_at"):
        return
    raise DeclarationError(
        f"`{name}` counts from 1, so there is no 0 in {expression!r}: it would fail the whole batch",
        fix="write 1 for the first, or -1 for the last",
    )


def _check_text(name: str, argument: exp.Expr, meaning: str, fault_of: Callable[[str], str], expression: str) -> None:
    text = written_text(argument)
    if text is not None and (fault := fault_of(text)):
        what = "be null for every record" if meaning == "unit" else "fail the whole batch"
        raise DeclarationError(
            f"{text!r} is no {meaning} for `{name}` in {expression!r}: {fault}; it would {what}",
            fix=f"write a {meaning} that there is"
            if meaning[0] not in "aeiou"
            else f"write an {meaning} that there is",
        )


def _division(node: exp.Expr, instead: str, expression: str) -> DeclarationError:
    shown = node.sql(dialect="spark")
    return DeclarationError(
        f"`{shown if len(shown) <= 60 else '...'}` divides by 0 in {expression!r}: it would fail the whole batch",
        fix=f"divide by something else, or use {instead}, which is null there",
    )


def _is_zero(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        node = node.this
    if not isinstance(node, exp.Literal) or node.is_string:
        return False
    return not set(node.name.lower().partition("e")[0]) & set("123456789")
