"""Finds what in a predicate could make a value of one row so large that no machine holds it."""

from __future__ import annotations

_MOST = 100_000
_SIZE_AT = {"repeat": 1, "array_repeat": 1, "lpad": 1, "rpad": 1, "space": 0}


def too_large(sql: str) -> str:
    """The function whose result is not certainly small, as it is called in SQL; empty if there is none.

    A size is small if it is a number up to 100,000. One that comes from a record may be any.
    """
    # Imported late: it loads the SQL parser.
    from sqlglot import exp  # noqa: PLC0415

    from tidemill.core.sql.dialect import tree_of  # noqa: PLC0415

    for call in tree_of(sql).find_all(exp.Anonymous):
        name, arguments = call.name.lower(), call.expressions
        place = _SIZE_AT.get(name)
        if name == "sequence" and not all(_is_small(each) for each in arguments[:2]):
            return name
        if place is not None and len(arguments) > place and not _is_small(arguments[place]):
            return name
    return ""


def _is_small(node: object) -> bool:
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.Neg):
        node = node.this
    return isinstance(node, exp.Literal) and str(node.this).isdigit() and int(node.this) <= _MOST
