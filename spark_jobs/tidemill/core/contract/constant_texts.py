"""The texts that constants of an expression are, also if they are computed by a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

NUMBERS = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.DOUBLE)
"""The types of numbers whose casts change no text here."""

_CHANGES: Mapping[str, Callable[[str], str]] = {
    **dict.fromkeys(("lower", "lcase"), str.lower),
    **dict.fromkeys(("upper", "ucase"), str.upper),
    "trim": lambda text: text.strip(" "),
    "reverse": lambda text: text[::-1],
    "string": str,
}
"""Functions of one text that are computed here as in Spark."""


def written_text(node: exp.Expr) -> str | None:
    """The text of a constant, as Spark casts it; None if it is none, or if that is not certain."""
    try:
        return _text(node)
    except RecursionError:
        return None


def _text(node: exp.Expr) -> str | None:
    match node.unnest():
        # A text with a backslash is another one to Spark.
        case exp.Literal(is_string=True) as literal:
            return None if "\\" in literal.name else literal.name
        case exp.Literal() as number:
            return str(float(number.name)) if "e" in number.name.lower() else number.name
        case exp.Cast(this=exp.Literal(is_string=False) as number, to=exp.DataType(this=kind)) if kind in NUMBERS:
            return number.name
        case exp.Neg(this=inner) if not inner.is_string and (digits := _text(inner)) is not None:
            return f"-{digits}"
        case exp.HexString() as binary:
            digits = str(binary.this)
            return bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0")).decode("utf-8", "replace")
        case exp.RawString() as raw:
            return str(raw.this)
        case exp.Concat() | exp.DPipe() | exp.Anonymous() as call:
            return _computed(call)
        case _:
            return None


def _computed(call: exp.Expr) -> str | None:
    """The text that a call of constants gives; None if it is not one of a few functions."""
    name = call.name.lower() if isinstance(call, exp.Anonymous) else "concat"
    given = [call.this, call.expression] if isinstance(call, exp.DPipe) else call.expressions
    texts = [_text(each) for each in given]
    if any(text is None for text in texts):
        return None
    known = [text or "" for text in texts]
    if name == "concat":
        return "".join(known)
    change = _CHANGES.get(name)
    return change(known[0]) if change is not None and len(known) == 1 else None
