"""Refuses constants that Spark's analyzer refuses: formats of numbers and of binary, templates, positions in a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from tidemill.core.contract.constant_texts import NUMBERS, written_text
from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.number_formats import fault_of_binary, fault_of_number_format, fault_of_template
from tidemill.core.sql.written_values import fault_of_pattern

_WRITING, _READING = ("to_char", "to_varchar"), ("to_number", "try_to_number")
_BINARY, _TEMPLATES = ("to_binary", "try_to_binary"), ("format_string", "printf")
_NO_TEXTS = "bDTNYVC"
_LAST = 2**31 - 1
_WHOLE = re.compile(r"\s*[+-]?\d{1,10}\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call, the types around it, and the expression in which it stands."""

    typed: TypedTree
    name: str
    arguments: Sequence[exp.Expr]
    expression: str

    def refusal(self, what: str, why: str, fix: str) -> DeclarationError:
        return DeclarationError(f"{what} in {self.expression!r}: {why}", fix=fix)


def check_formats(typed: TypedTree, name: str, arguments: Sequence[exp.Expr], expression: str) -> None:
    """Refuse a constant argument of a call that is no format, template or position.

    Raises:
        DeclarationError: Spark's analyzer refuses the constant, or the call fails or is null for every record.
    """
    call = _Call(typed, name, arguments, expression)
    match len(arguments):
        case 2 if name in _WRITING:
            _check_writing(call)
        case 2 if name in _READING:
            _check_format(call, fault_of_number_format)
        case 2 if name in _BINARY:
            _check_format(call, lambda text: fault_of_binary(text, read=True))
        case 4 if name == "regexp_replace":
            _check_position(call)
    template = written_text(arguments[0]) if name in _TEMPLATES and arguments else None
    if template is not None and (fault := fault_of_template(template)):
        what = f"{template!r} is no template for `{name}`"
        raise call.refusal(what, f"{fault}; Spark refuses it", "write %1$ for the first value")


def _check_writing(call: _Call) -> None:
    value, written = call.typed.exact(call.arguments[0]), call.arguments[1]
    if value is None:
        return
    if value.letter in "DTN":
        _check_format(call, lambda text: fault_of_pattern(text, read=False), "it would fail the whole batch")
        return
    shown = written.sql(dialect="spark")
    if written.find(exp.Column, exp.Identifier) is not None:
        what = f"`{call.name}` takes a constant as its format of `{value}`, but `{shown}` has a value per record"
        raise call.refusal(what, "Spark refuses it", "write the format itself")
    if value.letter != "y":
        _check_format(call, fault_of_number_format)
        return
    kind = call.typed.exact(written)
    if kind is not None and kind.letter != "s":
        what = f"`{call.name}` takes a text as its format of binary, not `{shown}`"
        raise call.refusal(what, "Spark refuses it", "write 'hex'")
    _check_format(call, lambda text: fault_of_binary(text, read=False))


def _check_format(call: _Call, fault_of: Callable[[str], str], end: str = "Spark refuses it") -> None:
    written = call.arguments[1]
    text, kind = written_text(written), call.typed.exact(written)
    if text is not None:
        fault, shown = fault_of(text), repr(text)
    else:
        fault = f"it is `{kind}`" if kind is not None and kind.letter in _NO_TEXTS else ""
        shown = f"`{written.sql(dialect='spark')}`"
    if fault:
        end = "it would be null for every record" if call.name == "try_to_binary" else end
        raise call.refusal(f"{shown} is no format for `{call.name}`", f"{fault}; {end}", "write a format that there is")


def _check_position(call: _Call) -> None:
    written = call.arguments[3]
    position = _position(written)
    if position is None or 1 <= position <= _LAST:
        return
    what = f"`{written.sql(dialect='spark')}` is no position for `{call.name}`"
    raise call.refusal(what, f"it counts from 1, up to {_LAST}; Spark refuses it", "write 1 for the whole text")


def _position(written: exp.Expr) -> int | None:
    """The integer that Spark makes of a constant, 0 if there is none; None if that is not certain."""
    match written.unnest():
        case exp.Neg(this=inner):
            found = _position(inner)
            return None if found is None else -found
        case exp.Cast(this=inner, to=exp.DataType(this=kind)) if kind in NUMBERS:
            return _position(inner)
        case exp.Literal(is_string=True) as text:
            return None if "\\" in text.name else int(text.name) if _WHOLE.fullmatch(text.name) else 0
        case exp.Literal() as number:
            try:
                return int(Decimal(number.name))
            except (InvalidOperation, OverflowError):
                return None
        case _:
            return None
