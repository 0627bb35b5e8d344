"""Texts that Spark takes for the clock: 'now', 'today', 'yesterday', 'tomorrow' where they become a date or a time."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp

_CLOCK = re.compile(r"\s*(now|today|yesterday|tomorrow)\b", re.IGNORECASE)


def clock_in(operands: Iterable[exp.Expr], *, computed: bool = False) -> str | None:
    """The first of these constants that is the clock once it becomes a date or a time; None without any.

    A text with a backslash may spell one. With `computed`, so may any constant that is made of texts.
    """
    return next((o.sql(dialect="spark") for o in operands if _is_clock(o, computed=computed)), None)


def _is_clock(operand: exp.Expr, *, computed: bool) -> bool:
    text = text_of(operand)
    if text is not None:
        return _CLOCK.match(text) is not None or "\\" in text
    # Looked at from the root, each part would be walked through for every one that it is in.
    if not computed:
        return False
    made_of_texts = any(text_of(part) is not None for part in operand.find_all(exp.Literal, exp.RawString))
    is_constant = not operand.find(exp.Column, exp.Identifier, exp.Null)
    return made_of_texts and is_constant and not is_moment(operand)


def is_moment(node: exp.Expr) -> bool:
    """Whether it is a typed literal: a constant that Spark refuses when it is none."""
    return isinstance(node, exp.Cast) and text_of(node.this) is not None


def text_of(node: exp.Expr) -> str | None:
    """The text of a literal, also of several that stand side by side; None for anything else."""
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
