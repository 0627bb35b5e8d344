"""Refuses calls that Spark's analyzer refuses: too few or too many arguments, or values of a kind it does not take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from tidemill.core.contract.constant_texts import written_text
from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.contract.known_types import Family, Known, Number, family
from tidemill.core.contract.named_arguments import check_named
from tidemill.core.contract.schema import Array, Decimal, Object, Scalar, spark_type
from tidemill.core.contract.schema_texts import SCHEMA_AT, fails_always, fault_of_schema
from tidemill.core.contract.sql_types import SqlType
from tidemill.core.contract.type_texts import check_variant_type
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.function_signatures import SIGNATURES, WORDS, Signature
from tidemill.core.sql.kinds import KINDS
from tidemill.core.sql.result_lines import CONSTANTS
from tidemill.core.sql.syntax_parts import UNITS, is_unit

_LETTERS: dict[Known, str] = {
    Scalar.STRING: "s",
    Scalar.INTEGER: "i",
    Scalar.LONG: "l",
    Scalar.DOUBLE: "x",
    Scalar.BOOLEAN: "b",
    Scalar.DATE: "D",
    Scalar.TIMESTAMP: "T",
    Scalar.BINARY: "y",
    Number.WHOLE: "il",
    Number.ANY: "ilxd",
}
_WITH_UNITS = ("dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff")
_OF_THEIR_OWN = (exp.Kwarg, exp.Distinct, exp.Star, exp.Order, exp.Ordered)
_SYNTAX: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Substring: ("substring", ("this", "start", "length", "zero_start")),
    exp.Overlay: ("overlay", ("this", "expression", "from_", "for_")),
    exp.StrPosition: ("position", ("substr", "this", "position")),
}
_SHORT = 60


@dataclass(frozen=True, slots=True)
class _Called:
    """A call of a function that has a signature, and the expression in which it stands."""

    name: str
    signature: Signature
    arguments: Sequence[exp.Expr]
    expression: str


def check_call(typed: TypedTree, node: exp.Expr, expression: str) -> None:
    """Refuse a call that Spark refuses, as far as that is certain.

    Raises:
        DeclarationError: a function does not take so many arguments, or values of this kind in this place; or a text
            that shall be a schema is none.
    """
    name, arguments = call_of(node)
    _check_unit(name, arguments, expression)
    check_named(name, arguments, expression)
    signature = SIGNATURES.get(name)
    if signature is None or any(isinstance(each, _OF_THEIR_OWN) for each in arguments):
        return
    if name in _WITH_UNITS and len(arguments) == 3 and is_unit(arguments[0]):
        return
    call = _Called(name, signature, arguments, expression)
    _check_number(call)
    for place in range(len(arguments)):
        _check_kind(typed, call, place)
        _check_constant(call, place)
    _check_schema(call)
    check_variant_type(name, arguments, expression)


def call_of(node: exp.Expr) -> tuple[str, Sequence[exp.Expr]]:
    """The function that a node calls, and its arguments; an empty name if it calls none."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower(), node.expressions
    name, keys = _SYNTAX.get(type(node), ("", ()))
    return name, [node.args[key] for key in keys if node.args.get(key) is not None]


def _check_unit(name: str, arguments: Sequence[exp.Expr], expression: str) -> None:
    """Refuse a unit of time that is written as a text."""
    unit = arguments[0] if name in _WITH_UNITS and len(arguments) == 3 else None
    if isinstance(unit, exp.Literal) and unit.is_string:
        rest = ", ".join(argument.sql(dialect="spark") for argument in arguments[1:])
        raise DeclarationError(
            f"`{name}` gets the text {unit.name!r} as its unit in {expression!r}, but a unit is a word, not a text: "
            "Spark refuses it",
            fix=f"write the unit without quotes: {name}({unit.name}, {rest})",
        )
    if name.startswith("timestamp") and name in _WITH_UNITS and (unit is None or not is_unit(unit)):
        raise DeclarationError(
            f"`{name}` takes a unit and two values in {expression!r}, and a unit is one of {', '.join(UNITS)}: Spark "
            "refuses it",
            fix=f"write {name}(DAY, ..., ...)",
        )


def _check_number(call: _Called) -> None:
    signature = call.signature
    if not signature.takes(len(call.arguments)):
        raise DeclarationError(
            f"`{call.name}` takes {signature.number}, but gets {len(call.arguments)} in {call.expression!r}: Spark "
            "refuses it",
            fix=f"give it {signature.number}",
        )


def _check_kind(typed: TypedTree, call: _Called, place: int) -> None:
    argument, word = call.arguments[place], call.signature.word(place)
    known, exact = typed.of(argument), typed.exact(argument)
    letters = _letters(known) if exact is None else exact.letter
    if isinstance(argument, exp.Lambda) or not letters or not set(letters) & KINDS.keys():
        return
    if not WORDS[word].letters.intersection(letters):
        shown = argument.sql(dialect="spark")
        shown = shown if len(shown) <= _SHORT else f"{shown[: _SHORT - 3]}..."
        raise DeclarationError(
            f"`{call.name}` takes {WORDS[word].shown} as argument {place + 1}, but `{shown}` is "
            f"{_shown(known, exact)} in {call.expression!r}: Spark refuses it",
            fix=f"give `{call.name}` {WORDS[word].shown} there",
        )
    array = typed.of(call.arguments[0])
    if known is not None and word == "item" and isinstance(array, Array) and _is_stranger(known, array.item):
        raise DeclarationError(
            f"`{call.name}` looks for {_shown(known, exact)} in an array of {spark_type(array.item)} in "
            f"{call.expression!r}: Spark refuses it",
            fix=f"give `{call.name}` a value of type {spark_type(array.item)}",
        )


def _check_constant(call: _Called, place: int) -> None:
    argument = call.arguments[place]
    if place in CONSTANTS.get(call.name, ()) and argument.find(exp.Column, exp.Identifier) is not None:
        raise DeclarationError(
            f"`{call.name}` takes a constant as argument {place + 1}, but `{argument.sql(dialect='spark')}` has "
            f"a value per record in {call.expression!r}: Spark refuses it",
            fix="write the value itself",
        )


def _is_stranger(known: Known, of: Known) -> bool:
    """Whether a value can be no item of an array."""
    kind, item = family(known), family(of)
    if kind is item or Family.OTHER in (item, kind):
        return False
    return item is Family.TEXT or kind is not Family.TEXT


def _check_schema(call: _Called) -> None:
    place = SCHEMA_AT.get(call.name)
    if place is None or len(call.arguments) <= place:
        return
    schema, end = written_text(call.arguments[place]), "Spark refuses it"
    if schema is None:
        return
    if not (fault := fault_of_schema(schema, call.name)):
        fault, end = fails_always(schema, call.name), "Spark would fail the batch"
    if fault:
        raise DeclarationError(
            f"{schema!r} is no schema for `{call.name}` in {call.expression!r}: {fault}; {end}",
            fix="write names with types, for example 'a INT, b STRING'",
        )


def _letters(known: Known) -> str:
    match known:
        case Array():
            return "a"
        case Object():
            return "o"
        case Decimal():
            return "d"
        case _:
            return _LETTERS.get(known, "")


def _shown(known: Known, exact: SqlType | None) -> str:
    if isinstance(known, Number):
        return known.value
    return f"a value of type {exact if known is None else spark_type(known)}"
