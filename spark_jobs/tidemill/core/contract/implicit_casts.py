"""Refuses expressions in which Spark would convert a text by itself, and predicates that are no conditions.

Spark runs in ANSI mode. If a text is compared or computed with a number, a boolean, a date or a time, Spark casts it,
and the whole batch fails at the first text that cannot be cast. What can be known without Spark is known here; where a
type is not certain, nothing is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from tidemill.core.contract.calls import check_call
from tidemill.core.contract.casts import check_cast
from tidemill.core.contract.certain_faults import ALIKE, check_alike, check_parts
from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.contract.inner_casts import check_inner_casts
from tidemill.core.contract.known_types import Family, Known, Number, family
from tidemill.core.contract.literals import is_castable
from tidemill.core.contract.operands import AS_CONDITION, uses
from tidemill.core.contract.schema import Decimal, Scalar, spark_type
from tidemill.core.contract.type_texts import check_types
from tidemill.core.contract.written_faults import check_written
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.dialect import tree_of
from tidemill.core.sql.expressions import parsed

_WORDS = {
    Family.NUMBER: ("a number", "DOUBLE"),
    Family.BOOLEAN: ("true or false", "BOOLEAN"),
    Family.MOMENT: ("a date or a time", "TIMESTAMP"),
}
_TARGETS = {Scalar.DATE: "DATE", Scalar.LONG: "BIGINT"}
_JOINED = tuple(f"given to {name}" for name in ("map", "concat", "decode"))
"""Further uses of values of which Spark makes one type where they are arrays, maps or structs."""

_SHORT = 100


def checked_type(expression: str, types: Mapping[str, Known], *, aggregates: bool = False) -> Known:
    """What is known of the type of an expression over columns of these types, by their names in lower case.

    Raises:
        DeclarationError: Spark would convert a text in it, or certainly refuses it; or `parsed` does not allow it.
    """
    parsed(expression, aggregates=aggregates)
    check_types(expression)
    tree = tree_of(expression)
    typed = TypedTree(tree, types)
    for node in typed.nodes:
        check_parts(typed, node, expression)
        check_call(typed, node, expression)
        check_cast(typed, node, expression)
        check_written(typed, node, expression)
        for operands, wanted, use in uses(typed, node):
            _check(typed, operands, wanted, use, expression)
            check_alike(typed, operands, use, expression)
            if use in (*ALIKE, *_JOINED):
                check_inner_casts(typed, operands, expression)
    check_analysis(typed, expression)
    return typed.of(tree)


def check_analysis(typed: TypedTree, expression: str) -> None:
    """Refuse what Spark's analyzer refuses: values of types that do not go together.

    Raises:
        DeclarationError: a part is refused; the first one is named.
    """
    for refused in typed.analysis.refused:
        raise DeclarationError(
            f"Spark refuses `{_shown(refused.node)}` in {expression!r}: {refused.why}", fix=refused.fix
        )


def check_predicate(expression: str, types: Mapping[str, Known]) -> None:
    """Refuse a predicate that certainly is neither true nor false, or in which Spark would convert a text.

    Raises:
        DeclarationError: it is one of these; or `parsed` does not allow it.
    """
    found = checked_type(expression, types)
    if found is None or family(found) is Family.BOOLEAN:
        return
    shown = found.value if isinstance(found, Number) else f"of type {spark_type(found)}"
    raise DeclarationError(
        f"a condition is true or false, but {expression!r} is {shown}",
        fix=f"compare it with something, for example {_example(found, expression)}",
    )


def _example(found: Known, expression: str) -> str:
    return f"({expression}) <> 0" if family(found) is Family.NUMBER else f"({expression}) IS NOT NULL"


def _check(typed: TypedTree, operands: Sequence[exp.Expr], wanted: Known, use: str, expression: str) -> None:
    kind = family(wanted)
    if kind is None or kind not in _WORDS:
        return
    for each in operands:
        found = typed.of(each)
        if found is not None and kind is Family.BOOLEAN and use == AS_CONDITION:
            _check_condition(found, each, expression)
        if found is not Scalar.STRING:
            continue
        value = _literal(each)
        if value is None:
            raise _refusal(each, wanted, use, expression)
        if not is_castable(value, wanted):
            raise DeclarationError(
                f"{value!r} is {use} as {_WORDS[kind][0]} in {expression!r}, and cannot be: Spark would fail the batch",
                fix=f"write {_WORDS[kind][0]} instead of {value!r}, or convert the other value to a text",
            )


def _check_condition(found: Known, node: exp.Expr, expression: str) -> None:
    if family(found) in (Family.BOOLEAN, Family.TEXT):
        return
    shown = found.value if isinstance(found, Number) else spark_type(found) if found is not None else ""
    raise DeclarationError(
        f"`{_shown(node)}` is used as a condition in {expression!r}, and is {shown}",
        fix=f"compare it: {_shown(node)} <> 0" if isinstance(found, Number | Decimal) else "compare it with a value",
    )


def _refusal(node: exp.Expr, wanted: Known, use: str, expression: str) -> DeclarationError:
    kind = family(wanted)
    assert kind is not None
    what, target = _WORDS[kind]
    target = _TARGETS.get(wanted, target) if isinstance(wanted, Scalar) else target
    shown = _shown(node)
    return DeclarationError(
        f"{shown} is a text (string), but is {use} as {what} in {expression!r}: Spark casts it, and the whole batch "
        "fails at the first text that cannot be cast",
        fix=f"write {_written(expression, shown, f'try_cast({shown} AS {target})')}, which is null for such a text; "
        "or give the column another type in the contract",
    )


def _written(expression: str, shown: str, cast: str) -> str:
    """The expression with the cast in it, if it is short and it is clear where the cast belongs."""
    found = list(re.finditer(rf"(?<![\w`.]){re.escape(shown)}(?![\w`(.])", expression))
    if len(found) != 1 or len(expression) > _SHORT:
        return f"{cast} instead of {shown}"
    return f"{expression[: found[0].start()]}{cast}{expression[found[0].end() :]}"


def _literal(node: exp.Expr) -> str | None:
    """The text, if a value is written as one; None otherwise."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


def _shown(node: exp.Expr) -> str:
    text = node.sql(dialect="spark")
    return text if len(text) <= 60 else f"{text[:57]}..."
