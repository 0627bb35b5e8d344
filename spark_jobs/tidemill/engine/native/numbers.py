"""Rules for arithmetic. Where integers leave 64 bits, DuckDB raises an error; Spark then decides what becomes of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from tidemill.core.contract.schema import DataType, Decimal, Scalar
from tidemill.engine.native.values import (
    DIGITS,
    DIGITS_OF,
    Of,
    Untranslatable,
    Value,
    alike,
    cast,
    duckdb_type,
    is_whole,
    refuse,
    type_of,
)

_POWER = re.compile(r"(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+")
_LONGEST = 1_000
"""A division repeats its parts, so they may have so many characters."""

_SIGNS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.SafeAdd: "+", exp.SafeMultiply: "*"}


_LOWER: Mapping[type[exp.Expr], tuple[type[exp.Expr], ...]] = {
    exp.BitwiseRightShift: (exp.BitwiseAnd, exp.BitwiseOr),
    exp.BitwiseAnd: (exp.BitwiseOr,),
    exp.BitwiseOr: (),
}
"""For each operator of bits, those that Spark computes later."""


def number_literal(node: exp.Literal) -> Value:
    """A written number in the type that Spark gives it: an integer, a long, or a decimal with as many digits."""
    text: str = node.this
    if _POWER.fullmatch(text) and math.isfinite(float(text)) and not node.is_string:
        return Value(text, Scalar.DOUBLE)
    whole, point, fraction = text.partition(".")
    if node.is_string or not (whole + fraction).isdecimal():
        return refuse(node)
    if not point and int(text) < 2**63:
        of = Scalar.INTEGER if int(text) < 2**31 else Scalar.LONG
        return Value(text if of is Scalar.INTEGER else f"CAST({text} AS BIGINT)", of, written=text)
    digits = max(len((whole + fraction).lstrip("0")), len(fraction), 1)
    if digits > DIGITS:
        return refuse(node)
    wanted = Decimal(digits, len(fraction))
    return Value(f"CAST({text} AS {duckdb_type(wanted)})", wanted, written=text)


def _negated(of: Of, node: exp.Neg) -> Value:
    """A negative number. For Spark the sign belongs to a written one, which may then be one less."""
    written = node.this
    if isinstance(written, exp.Literal) and written.is_int and int(written.this) <= 2**63:
        of_number: DataType = Scalar.INTEGER if int(written.this) <= 2**31 else Scalar.LONG
        return Value(f"CAST(-{written.this} AS {duckdb_type(of_number)})", of_number)
    if isinstance(written, exp.TryCast) and _is_written(written) and int(written.this.this.partition(".")[0]) >= 2**63:
        return refuse(node)
    value = _number(of, written)
    return Value(f"(-{value.text})", value.type, written=value.written and f"-{value.written}")


def _is_written(node: exp.Expr) -> bool:
    """Whether an expression is a written integer, with or without a sign and the suffix of its type."""
    while isinstance(node, exp.Paren | exp.Neg | exp.TryCast | exp.Cast):
        node = node.this
    return isinstance(node, exp.Literal) and not node.is_string


def _arithmetic(of: Of, node: exp.Binary) -> Value:
    left, right, sign = _number(of, node.this), _number(of, node.expression), _SIGNS[type(node)]
    if Scalar.DOUBLE in (left.type, right.type) or (is_whole(left) and is_whole(right)):
        left, right = alike([left, right])
        return Value(f"({left.text} {sign} {right.text})", left.type)
    if any(is_whole(value) and _is_written(n) for n, value in ((node.this, left), (node.expression, right))):
        # Spark gives a written integer as many digits as it has, others all of their type.
        return refuse(node)
    found, most = _exact(left, right, product=sign == "*"), Decimal(DIGITS)
    return cast(Value(f"({cast(left, most).text} {sign} {cast(right, most).text})", most), found)


def _exact(left: Value, right: Value, *, product: bool) -> Decimal:
    """The type of a sum or product of decimals without fractions, in which no digit can be lost, as Spark has it."""
    types = [v.type if isinstance(v.type, Decimal) else Decimal(DIGITS_OF[v.type]) for v in (left, right)]  # type: ignore[index]
    lengths = [t.precision for t in types]
    digits = (sum(lengths) if product else max(lengths)) + 1
    if digits > DIGITS or any(t.scale for t in types):
        raise Untranslatable("arithmetic with decimals that may lose digits")
    return Decimal(digits)


def _tried(of: Of, node: exp.Binary) -> Value:
    """A sum or product of integers; null where it leaves 64 bits."""
    left, right = (f"CAST({_whole(of, n).text} AS HUGEINT)" for n in (node.this, node.expression))
    return Value(f"TRY_CAST({left} {_SIGNS[type(node)]} {right} AS BIGINT)", Scalar.LONG)


def _bits(of: Of, node: exp.BitwiseAnd | exp.BitwiseOr) -> Value:
    # Spark ranks shifts before AND before OR; for the parser, all of them have one rank.
    sides = (node.this, node.expression)
    if any(isinstance(side, _LOWER[type(node)]) for side in sides):
        return refuse(node)
    left, right = (_whole(of, n).text for n in sides)
    return Value(f"({left} {'&' if isinstance(node, exp.BitwiseAnd) else '|'} {right})", Scalar.LONG)


def _shifted(of: Of, node: exp.BitwiseRightShift) -> Value:
    if isinstance(node.this, _LOWER[exp.BitwiseRightShift]):
        return refuse(node)
    value = _whole(of, node.this)
    return Value(f"({value.text} >> {_constant(node.expression, most=63)})", Scalar.LONG)


def _quotient(of: Of, node: exp.Div | exp.SafeDivide) -> Value:
    """A division of doubles or integers: null, or an error, where the divisor is zero."""
    values = [_number(of, part) for part in (node.this, node.expression)]
    if any(isinstance(v.type, Decimal) for v in values) and not any(v.type is Scalar.DOUBLE for v in values):
        return refuse(node)
    dividend, divisor = (cast(value, Scalar.DOUBLE).text for value in values)
    if values[1].written and float(values[1].written):
        return Value(f"({dividend} / {divisor})", Scalar.DOUBLE)
    if len(dividend + divisor) > _LONGEST:
        return refuse(node)
    if isinstance(node, exp.SafeDivide):
        return Value(f"CASE WHEN {divisor} <> 0 THEN {dividend} / {divisor} END", Scalar.DOUBLE)
    # DuckDB's own division gives infinity. The cast fails for every divisor, and Spark says what is wrong.
    fails = f"CAST('/' || CAST({divisor} AS VARCHAR) || '/' AS DOUBLE)"
    zero = f"{divisor} = 0 AND {dividend} IS NOT NULL"
    return Value(f"CASE WHEN {zero} THEN {fails} ELSE {dividend} / {divisor} END", Scalar.DOUBLE)


def _root(of: Of, node: exp.Sqrt) -> Value:
    # For a negative number, DuckDB raises an error where Spark gives NaN.
    return Value(f"sqrt({cast(_number(of, node.this), Scalar.DOUBLE).text})", Scalar.DOUBLE)


def _absolute(of: Of, node: exp.Abs) -> Value:
    value = _number(of, node.this)
    return refuse(node) if isinstance(value.type, Decimal) else Value(f"abs({value.text})", value.type)


def _is_nan(of: Of, node: exp.IsNan) -> Value:
    return Value(f"coalesce(isnan({cast(_number(of, node.this), Scalar.DOUBLE).text}), FALSE)", Scalar.BOOLEAN)


def _divided(of: Of, node: exp.IntDiv) -> Value:
    return Value(f"({_whole(of, node.this).text} // {_constant(node.expression)})", Scalar.LONG)


def _modulo(of: Of, node: exp.Anonymous) -> Value:
    """What is left over after a division, never negative."""
    dividend, divisor = node.expressions
    value, by = _whole(of, dividend).text, _constant(divisor)
    return Value(f"(({value} % {by} + {by}) % {by})", Scalar.LONG)


def _sum(of: Of, node: exp.Sum) -> Value:
    return _total(_number(of, node.this), "CAST")


def _try_sum(of: Of, node: exp.Anonymous) -> Value:
    [summand] = node.expressions
    return _total(_number(of, summand), "TRY_CAST")


def _total(value: Value, word: str) -> Value:
    wanted: DataType = Scalar.LONG
    if value.type is Scalar.DOUBLE:
        return Value(f"sum({value.text})", Scalar.DOUBLE)
    if isinstance(value.type, Decimal):
        # DuckDB lets a sum have 39 digits.
        if value.type.precision + 10 > DIGITS:
            raise Untranslatable(f"sums of decimals of {value.type.precision} digits")
        wanted = Decimal(value.type.precision + 10, value.type.scale)
    return Value(f"{word}(sum({value.text}) AS {duckdb_type(wanted)})", wanted)


def _number(of: Of, node: exp.Expr) -> Value:
    value = of(node)
    return value if is_whole(value) or isinstance(value.type, Decimal) or value.type is Scalar.DOUBLE else refuse(node)


def _whole(of: Of, node: exp.Expr) -> Value:
    """An integer of 64 bits. With 32 bits, Spark's result would have 32 bits, too."""
    value = of(node)
    return value if value.type is Scalar.LONG else refuse(node)


def _constant(node: exp.Expr, most: int = 2**62) -> int:
    """A whole number from 1 to `most`."""
    is_long = isinstance(node, exp.TryCast) and type_of(node.to) is Scalar.LONG
    literal = node.this if is_long else node
    if not isinstance(literal, exp.Literal) or not literal.is_int or not 1 <= int(literal.this) <= most:
        refuse(node)
    return int(literal.this)


RULES_OF_NUMBERS: Mapping[type[exp.Expr], Callable[[Of, Any], Value]] = {
    exp.Neg: _negated,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _arithmetic),
    **dict.fromkeys((exp.SafeAdd, exp.SafeMultiply), _tried),
    exp.BitwiseAnd: _bits,
    exp.BitwiseOr: _bits,
    exp.BitwiseRightShift: _shifted,
    exp.IntDiv: _divided,
    **dict.fromkeys((exp.Div, exp.SafeDivide), _quotient),
    exp.Sqrt: _root,
    exp.Abs: _absolute,
    exp.IsNan: _is_nan,
    exp.Sum: _sum,
}

FUNCTIONS_OF_NUMBERS: Mapping[str, Callable[[Of, Any], Value]] = {"try_sum": _try_sum, "pmod": _modulo}
