"""Rules for texts. Both engines compare them byte by byte and count their characters as code points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from tidemill.core.contract.schema import Scalar
from tidemill.engine.native.values import Of, Value, refuse

_PLAIN = frozenset(" !\"#%&',-/:;<=>@_`~")
"""Signs that mean nothing special in a regular expression, as letters and digits do."""

_ALONE = _PLAIN | frozenset("?*+.|$(){}")
"""Signs that mean themselves when they stand alone in brackets."""


def _length(of: Of, node: exp.Length) -> Value:
    return Value(f"CAST(length({_text(of, node.this)}) AS INTEGER)", Scalar.INTEGER)


def _first_part(of: Of, node: exp.Bracket) -> Value:
    """What stands before the first separator; there is always a first part."""
    split, [index] = node.this, node.expressions
    first = isinstance(index, exp.Literal) and index.name == "0"
    if not first or not isinstance(split, exp.RegexpSplit) or split.args.get("limit") is not None:
        return refuse(node)
    return Value(f"split_part({_text(of, split.this)}, {_separator(split)}, 1)", Scalar.STRING)


def _separator(split: exp.RegexpSplit) -> str:
    """The one text that a regular expression matches, as SQL; others are refused."""
    pattern = split.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        return refuse(split)
    text: str = pattern.this
    if len(text) == 3 and text[0] + text[2] == "[]" and (text[1].isalnum() or text[1] in _ALONE):
        text = text[1]
    elif not text or not all(sign.isalnum() or sign in _PLAIN for sign in text):
        return refuse(split)
    return "'" + text.replace("'", "''") + "'"


def _joined(of: Of, node: exp.Concat | exp.DPipe) -> Value:
    """Texts one after the other; null if one of them is."""
    parts = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
    return Value(f"({' || '.join(_text(of, part) for part in parts)})", Scalar.STRING)


def _like(of: Of, node: exp.Like) -> Value:
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string or "\\" in pattern.this:
        return refuse(node)
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    return Value(f"({_text(of, node.this)} {word} {_text(of, pattern)})", Scalar.BOOLEAN)


def _holds(word: str) -> Callable[[Of, exp.Binary], Value]:
    def holds(of: Of, node: exp.Binary) -> Value:
        return Value(f"{word}({_text(of, node.this)}, {_text(of, node.expression)})", Scalar.BOOLEAN)

    return holds


def _text(of: Of, node: exp.Expr) -> str:
    value = of(node)
    return value.text if value.type is Scalar.STRING else refuse(node)


RULES_OF_TEXTS: Mapping[type[exp.Expr], Callable[[Of, Any], Value]] = {
    exp.Length: _length,
    exp.Bracket: _first_part,
    exp.Concat: _joined,
    exp.DPipe: _joined,
    exp.Like: _like,
    exp.StartsWith: _holds("starts_with"),
    exp.EndsWith: _holds("ends_with"),
    exp.Contains: _holds("contains"),
}
