"""Finds what in a predicate could make a value of one row so large that no machine holds it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

_MOST, _MOST_NESTED = 100_000, 10_000_000
_SIZE_AT = {"repeat": 1, "array_repeat": 1, "lpad": 1, "rpad": 1, "space": 0, "format_number": 1, "array_insert": 1}
_FORMATS = ("format_string", "printf")
_PUT_AT = {"replace": 2, "array_join": 1}
_WIDE = re.compile(r"%[^a-zA-Z%]*[0-9]{6}")


def too_large(tree: exp.Expr) -> str:
    """The function whose result is not certainly small, as it is called in SQL; empty if there is none.

    A size is small if it is a number up to 100,000, and the sizes in one call are small if their product is up to ten
    millions. One that comes from a record may be any.
    """
    # Imported late: it loads the SQL parser.
    from sqlglot import exp  # noqa: PLC0415

    outermost: dict[int, int] = {}
    products: dict[int, int] = {}
    # Outer calls come before inner ones.
    for call in tree.find_all(exp.Anonymous, bfs=True):
        size, outer = _size(call), call.find_ancestor(exp.Anonymous)
        if size is None:
            return str(call.name.lower())
        top = outermost[id(call)] = id(call) if outer is None else outermost[id(outer)]
        products[top] = products.get(top, 1) * size
        if products[top] > _MOST_NESTED:
            return str(call.name.lower())
    return ""


def _size(call: exp.Anonymous) -> int | None:
    """By how much a call can make a value larger; None if that is not certain."""
    from sqlglot import exp  # noqa: PLC0415

    name, arguments = call.name.lower(), call.expressions
    if name == "sequence":
        ends = [_number(each) for each in arguments[:2]]
        return None if None in ends else max(sum(map(abs, filter(None, ends))), 1)
    if name in _FORMATS:
        known = bool(arguments) and isinstance(arguments[0], exp.Literal)
        return None if not known or _WIDE.search(str(arguments[0].this)) else 1
    if (place := _PUT_AT.get(name)) is not None:
        return 1 if len(arguments) <= place or isinstance(arguments[place], exp.Literal) else None
    place = _SIZE_AT.get(name)
    if place is None or len(arguments) <= place:
        return 1
    number = _number(arguments[place])
    if name == "format_number" and isinstance(arguments[place], exp.Literal) and arguments[place].is_string:
        return 1
    return None if number is None else max(abs(number), 1)


def _number(node: object) -> int | None:
    """The number up to 100,000 that is written there; None if something else is."""
    from sqlglot import exp  # noqa: PLC0415

    sign = -1 if isinstance(node, exp.Neg) else 1
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal) or inner.is_string or not str(inner.this).isdigit():
        return None
    return sign * int(str(inner.this)) if int(str(inner.this)) <= _MOST else None
