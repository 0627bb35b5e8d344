"""Which parts of a predicate can fail the whole batch, as far as the types of its columns tell.

Spark runs in ANSI mode: a cast that a value does not fit, a division by zero and a decimal that leaves 38 digits raise
an error. Sums of integers are looked at in `tidemill.core.contract.exact_sums`. What the types rule out is not named:
a cast to a text, a division by 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from sqlglot import exp

from tidemill.core.contract.calls import call_of
from tidemill.core.contract.decimal_digits import INTEGERS, Digits, digits_of, of_leaf, overflows
from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.contract.guards import is_divided_safely, is_positive
from tidemill.core.contract.known_types import Known
from tidemill.core.contract.schema import Decimal, Scalar
from tidemill.core.sql.dialect import tree_of
from tidemill.core.sql.function_types import INTS_AT
from tidemill.core.sql.functions import CONVERSIONS
from tidemill.core.sql.syntax import is_safe
from tidemill.core.sql.syntax_parts import is_written

_DIVIDED: Mapping[type[exp.Expr], str] = {exp.Div: "/", exp.IntDiv: "div", exp.Mod: "%"}
_COMPUTED: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.Add: ("+", "try_add"),
    exp.Sub: ("-", "try_subtract"),
    exp.Mul: ("*", "try_multiply"),
}
_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR)
_APPROXIMATE = (exp.DType.FLOAT, exp.DType.DOUBLE)
_WHOLE = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_TIMES = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ)
_SAFE: Mapping[Known, tuple[exp.DType, ...]] = {
    Scalar.BOOLEAN: (exp.DType.BOOLEAN, *_WHOLE, *_APPROXIMATE),
    Scalar.INTEGER: (exp.DType.INT, exp.DType.BIGINT, *_APPROXIMATE, exp.DType.BOOLEAN, *_TIMES),
    Scalar.LONG: (exp.DType.BIGINT, *_APPROXIMATE, exp.DType.BOOLEAN, *_TIMES),
    Scalar.DOUBLE: (*_APPROXIMATE, exp.DType.BOOLEAN),
    Scalar.STRING: (exp.DType.BINARY,),
    Scalar.BINARY: (exp.DType.BINARY,),
    Scalar.DATE: (exp.DType.DATE, *_TIMES),
    Scalar.TIMESTAMP: (exp.DType.DATE, *_TIMES, exp.DType.BIGINT, *_APPROXIMATE),
}
_SHORT, _MOST = 60, 20


@dataclass(frozen=True, slots=True)
class Fault:
    """A part of a predicate that fails for some values: its sign, its text, and the function that is null instead."""

    sign: str
    part: str
    instead: str


def possible_faults(predicate: str, types: Mapping[str, Known]) -> tuple[Fault, ...]:
    """The casts, divisions and computations with decimals in a predicate that can fail over columns of these types.

    It names up to 20 of them. A text that cannot be read has none.
    """
    try:
        typed = TypedTree(tree_of(predicate), {name.lower(): kind for name, kind in types.items()})
    except (ValueError, RecursionError):
        return ()
    return tuple(islice(_faults(typed), _MOST))


def _faults(typed: TypedTree) -> Iterator[Fault]:
    digits: dict[int, Digits] = {}
    # Without recursion, children first: a sum may be as long as the text.
    for node in reversed(typed.nodes):
        found = digits_of(node, typed, digits)
        fails = found is not None and overflows(node, found)
        # What is computed from a part that fails is not told, too.
        if found is not None and not fails:
            digits[id(node)] = found.fitted()
        if type(node) in _DIVIDED and (fails or not _divides(node, typed)):
            instead = "try_mod" if isinstance(node, exp.Mod) else "try_divide"
            yield Fault(_DIVIDED[type(node)], _shown(node), instead)
        elif (cast := _cast(node)) is not None and not _always_casts(*cast, typed):
            yield Fault("cast" if isinstance(node, exp.Cast) else node.name.lower(), _shown(node), "try_cast")
        elif (wide := _cast_to_int(node, typed)) is not None:
            yield Fault(wide, _shown(node), "try_cast(... AS INT)")
        elif fails and type(node) in _COMPUTED:
            yield Fault(_COMPUTED[type(node)][0], _shown(node), _COMPUTED[type(node)][1])


def _cast(node: exp.Expr) -> tuple[exp.Expr, exp.DataType] | None:
    """The value and the type of a cast that can fail, also of one that is written as a function."""
    if isinstance(node, exp.Cast) and isinstance(node.to, exp.DataType):
        return None if is_safe(node) else (node.this, node.to)
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != 1:
        return None
    kind = CONVERSIONS.get(node.name.lower())
    value = node.expressions[0]
    if kind is None or is_written(value):
        return None
    return value, exp.DataType.build(kind, dialect="spark")


def _cast_to_int(node: exp.Expr, typed: TypedTree) -> str | None:
    """The name of a call to which a number is given that Spark casts to an int, and that may be none."""
    name, arguments = call_of(node)
    for place in INTS_AT.get(name, ()):
        argument = arguments[place] if place < len(arguments) else None
        found = typed.exact(argument)
        if argument is not None and not is_written(argument) and found is not None and found.letter in "lfxd":
            return name
    return None


def _divides(node: exp.Expr, typed: TypedTree) -> bool:
    """Whether every number can be divided: the divisor is not 0, and -1 does not leave a bigint."""
    if is_divided_safely(node) and not isinstance(_bare(node.expression), exp.Literal):
        whole = isinstance(node, exp.IntDiv)
        return not whole or typed.of(node.this) is Scalar.INTEGER or is_positive(node.expression)
    divisor, sign = node.expression, 1
    while isinstance(divisor, exp.Paren | exp.Neg):
        sign = -sign if isinstance(divisor, exp.Neg) else sign
        divisor = divisor.this
    if not isinstance(divisor, exp.Literal) or divisor.is_string or not set(divisor.name) & set("123456789"):
        return False
    if "e" in divisor.name.lower():
        return False
    return not (isinstance(node, exp.IntDiv) and sign < 0 and divisor.name == "1")


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return node


def _always_casts(value: exp.Expr, to: exp.DataType, typed: TypedTree) -> bool:
    """Whether every value of the type fits."""
    known = typed.of(value)
    always = (exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.BOOLEAN) if isinstance(known, Decimal) else ()
    if to.this in (*_TEXTS, *always) or (isinstance(known, Scalar) and to.this in _SAFE.get(known, ())):
        return True
    held = of_leaf(value, known) if isinstance(known, Decimal) or known in INTEGERS else None
    sizes = [int(size.name) for size in to.expressions if size.name.isdigit()]
    if known is Scalar.BOOLEAN and to.this is exp.DType.DECIMAL:
        return not sizes or sizes[0] - (sizes[1] if len(sizes) > 1 else 0) >= 1
    if held is None or to.this is not exp.DType.DECIMAL or not sizes:
        return False
    scale = sizes[1] if len(sizes) > 1 else 0
    # Rounding 9.99 to one digit after the point gives one digit more before it.
    return sizes[0] - scale >= held.whole + (scale < held.scale)


def _shown(node: exp.Expr) -> str:
    try:
        text = node.sql(dialect="spark")
    except RecursionError:
        return "a long part of it"
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."
