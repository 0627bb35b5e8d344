"""Texts in which Spark sees the clock: 'now', 'today', 'yesterday', 'tomorrow', if cast to a date or a time."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp

_CLOCK = re.compile(r"\s*(now|today|yesterday|tomorrow)\b", re.IGNORECASE)


def clock_in(operands: Iterable[exp.Expr], *, computed: bool = False) -> str | None:
    """The SQL of the first constant that means the clock if cast to a date or a time; None when there is none.

    A text with a backslash counts, because escapes may spell such a word. With `computed`, so do constants computed
    from texts.
    """
    return next((o.sql(dialect="spark") for o in operands if _is_clock(o, computed=computed)), None)


def _is_clock(operand: exp.Expr, *, computed: bool) -> bool:
    text = text_of(operand)
    if text is not None:
        return _CLOCK.match(text) is not None or "\\" in text
    # Only on request: a search of the whole tree would otherwise walk through a part once for each node around it.
    if not computed:
        return False
    made_of_texts = any(text_of(part) is not None for part in operand.find_all(exp.Literal, exp.RawString))
    is_constant = not operand.find(exp.Column, exp.Identifier, exp.Null)
    return made_of_texts and is_constant and not is_moment(operand)


def is_moment(node: exp.Expr) -> bool:
    """Whether the node is a typed literal, such as DATE '2026-03-01', whose text Spark checks."""
    return isinstance(node, exp.Cast) and text_of(node.this) is not None


def text_of(node: exp.Expr) -> str | None:
    """The text of a literal, or of several adjacent literals; None for anything else."""
    match node:
        case exp.Paren():
            return text_of(node.this)
        case exp.RawString():
            return str(node.this)
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.Concat():
            parts = [text_of(part) for part in node.expressions]
            return None if None in parts else "".join(part or "" for part in parts)
        case _:
            return None
