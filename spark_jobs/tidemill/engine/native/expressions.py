"""Expressions of Spark SQL in DuckDB's SQL: one rule for each kind of expression that gives the same in both.

What has no rule is refused, and Spark computes it. A rule gets `of`, which translates a part of the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from tidemill.core.contract.schema import Decimal, Scalar, spark_type
from tidemill.engine.native.numbers import FUNCTIONS_OF_NUMBERS, RULES_OF_NUMBERS, number_literal
from tidemill.engine.native.sketches import FUNCTIONS_OF_SKETCHES
from tidemill.engine.native.texts import RULES_OF_TEXTS
from tidemill.engine.native.values import Of, Untranslatable, Value, alike, cast, duckdb_type, is_whole, refuse, type_of

_TRUE, _FALSE = "TRUE", "FALSE"
_COMPARED = {exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}


@dataclass(frozen=True, slots=True)
class Expressions:
    """Translates expressions over columns; `columns` has each column under its name in Spark."""

    columns: Mapping[str, Value]

    def of(self, node: exp.Expr) -> Value:
        """The expression in DuckDB's SQL, with its type.

        Raises:
            Untranslatable: there is no rule for it, or not for values of these types.
        """
        if isinstance(node, exp.Column):
            return self._column(node)
        rule = _FUNCTIONS.get(node.name.lower()) if isinstance(node, exp.Anonymous) else _RULES.get(type(node))
        return refuse(node) if rule is None or _has_more(node) else rule(self.of, node)

    def _column(self, node: exp.Column) -> Value:
        found = None if node.table else self.columns.get(node.name)
        if found is None:
            raise Untranslatable(f"the column {node.sql('spark')}")
        if not found.text and found.type is not None:
            raise Untranslatable(f"{node.sql('spark')}, which is {spark_type(found.type)}")
        return found


_PARTS = frozenset({"this", "expression", "expressions"})
_MORE: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Literal: frozenset({"is_string"}),
    **dict.fromkeys((exp.Cast, exp.TryCast), frozenset({"to", "safe"})),
    exp.Case: frozenset({"ifs", "default"}),
    exp.Div: frozenset({"typed", "safe"}),
    exp.If: frozenset({"true", "false"}),
    exp.Between: frozenset({"low", "high"}),
    exp.Like: frozenset({"negate"}),
    **dict.fromkeys((exp.Greatest, exp.Least), frozenset({"ignore_nulls"})),
    exp.Count: frozenset({"big_int"}),
    **dict.fromkeys((exp.Concat, exp.DPipe), frozenset({"safe"})),
    exp.ConcatWs: frozenset({"safe", "coalesce", "flatten"}),
}
"""The parts of expressions that rules look at, beside `_PARTS`; the parser has more for what other dialects write."""


def _has_more(node: exp.Expr) -> bool:
    """Whether an expression has a part that its rule does not look at, such as `SYMMETRIC`."""
    known = _PARTS | _MORE.get(type(node), frozenset())
    return any(part for name, part in node.args.items() if name not in known)


def condition(of: Of, node: exp.Expr) -> Value:
    """An expression that is true, false or null."""
    found = of(node)
    return found if found.type in (Scalar.BOOLEAN, None) else refuse(node)


def _literal(of: Of, node: exp.Literal) -> Value:
    if node.is_string and not {"\\", "\0"} & set(node.this):
        return Value("'" + node.this.replace("'", "''") + "'", Scalar.STRING)
    return number_literal(node)


def _cast(of: Of, node: exp.Cast) -> Value:
    wanted = type_of(node.to)
    if wanted is Scalar.DOUBLE and isinstance(node.this, exp.Literal):
        infinite = node.this.is_string and node.this.this == "Infinity"
        return Value("CAST('Infinity' AS DOUBLE)", wanted) if infinite else cast(number_literal(node.this), wanted)
    # Spark's number with the suffix of a type, such as 4294967296BD, is a cast for the parser.
    if isinstance(node.this, exp.Literal) and (isinstance(wanted, Decimal) or node.this.is_int):
        return Value(f"CAST({node.this.this} AS {duckdb_type(wanted)})", wanted) if _is_plain(node) else refuse(node)
    # The parser makes a TryCast of every cast of Spark, and marks those that do not fail.
    return cast(of(node.this), wanted, fails=not node.args.get("safe"))


def _is_plain(node: exp.Cast) -> bool:
    return node.this.this.replace(".", "", 1).isdigit() and (node.is_type("decimal") or node.is_type("bigint"))


def _case(of: Of, node: exp.Case) -> Value:
    """The first branch whose condition is true; branches with a condition that is known to be false are left out."""
    if node.this is not None:
        return refuse(node)
    default = node.args.get("default")
    conditions = [*(condition(of, branch.this).text for branch in node.args["ifs"]), _TRUE]
    results = [*(of(branch.args["true"]) for branch in node.args["ifs"]), of(default or exp.null())]
    # All branches give the type, also those that are never taken.
    kept = [(when, v) for when, v in zip(conditions, alike(results), strict=True) if when != _FALSE]
    certain = [when for when, _ in kept].index(_TRUE)
    whens, last = [f"WHEN {when} THEN {value.text}" for when, value in kept[:certain]], kept[certain][1]
    return Value(f"CASE {' '.join(whens)} ELSE {last.text} END", last.type) if whens else last


def _compared(of: Of, node: exp.Binary) -> Value:
    # For Spark all comparisons are of one rank; the parser has two.
    if any(isinstance(side, exp.Predicate) for side in (node.this, node.expression)):
        return refuse(node)
    left, right = alike([of(node.this), of(node.expression)])
    if isinstance(node, exp.EQ) and isinstance(node.this, exp.Typeof) and isinstance(node.expression, exp.Literal):
        return Value(_TRUE if left.text == right.text else _FALSE, Scalar.BOOLEAN)
    return Value(f"({left.text} {_COMPARED[type(node)]} {right.text})", Scalar.BOOLEAN)


def _between(of: Of, node: exp.Between) -> Value:
    value, low, high = alike([of(n) for n in (node.this, node.args["low"], node.args["high"])])
    return Value(f"({value.text} BETWEEN {low.text} AND {high.text})", Scalar.BOOLEAN)


def _both(of: Of, node: exp.And | exp.Or) -> Value:
    word = "AND" if isinstance(node, exp.And) else "OR"
    left, right = condition(of, node.this), condition(of, node.expression)
    return Value(f"({left.text} {word} {right.text})", Scalar.BOOLEAN)


def _not(of: Of, node: exp.Not) -> Value:
    return Value(f"(NOT {condition(of, node.this).text})", Scalar.BOOLEAN)


def _is_null(of: Of, node: exp.Is) -> Value:
    if not isinstance(node.expression, exp.Null):
        return refuse(node)
    return Value(f"({of(node.this).text} IS NULL)", Scalar.BOOLEAN)


def _coalesce(of: Of, node: exp.Coalesce) -> Value:
    values = alike([of(n) for n in (node.this, *node.expressions)])
    return Value(f"coalesce({', '.join(v.text for v in values)})", values[0].type)


def _concat_ws(of: Of, node: exp.ConcatWs) -> Value:
    values = [of(n) for n in node.expressions]
    if len(values) < 2 or any(v.type not in (Scalar.STRING, None) for v in values):
        return refuse(node)
    return Value(f"concat_ws({', '.join(v.text for v in values)})", Scalar.STRING)


def _nullif(of: Of, node: exp.Nullif) -> Value:
    value, other = of(node.this), of(node.expression)
    return Value(f"nullif({value.text}, {other.text})", value.type) if value.type == other.type else refuse(node)


def _typeof(of: Of, node: exp.Typeof) -> Value:
    found = of(node.this).type
    return refuse(node) if found is None else Value(f"'{spark_type(found)}'", Scalar.STRING)


def _micros(of: Of, node: exp.UnixMicros) -> Value:
    value = of(node.this)
    return Value(f"epoch_us({value.text})", Scalar.LONG) if value.type is Scalar.TIMESTAMP else refuse(node)


def _moment(of: Of, node: exp.Anonymous) -> Value:
    [value] = map(of, node.expressions)
    text = f"make_timestamptz({cast(value, Scalar.LONG).text})"
    return Value(text, Scalar.TIMESTAMP) if is_whole(value) else refuse(node)


def _extreme(of: Of, node: exp.Min | exp.Max) -> Value:
    value, word = of(node.this), "min" if isinstance(node, exp.Min) else "max"
    return refuse(node) if node.expressions else Value(f"{word}({value.text})", value.type)


def _if(of: Of, node: exp.If) -> Value:
    branch = exp.If(this=node.this, true=node.args["true"])
    return _case(of, exp.Case(ifs=[branch], default=node.args.get("false")))


def _in(of: Of, node: exp.In) -> Value:
    """Whether a value is one of some; subqueries and arrays have no rule."""
    if not node.expressions:
        return refuse(node)
    value, *others = alike([of(n) for n in (node.this, *node.expressions)])
    return Value(f"({value.text} IN ({', '.join(v.text for v in others)}))", Scalar.BOOLEAN)


def _furthest(of: Of, node: exp.Greatest | exp.Least) -> Value:
    """The greatest or the least of some values, without those that are null."""
    values = alike([of(n) for n in (node.this, *node.expressions)])
    word = "greatest" if isinstance(node, exp.Greatest) else "least"
    return Value(f"{word}({', '.join(v.text for v in values)})", values[0].type)


def _count(of: Of, node: exp.Count) -> Value:
    if node.expressions or isinstance(node.this, exp.Distinct):
        return refuse(node)
    counted = "*" if isinstance(node.this, exp.Star) else of(node.this).text
    return Value(f"count({counted})", Scalar.LONG)


def _count_if(of: Of, node: exp.CountIf) -> Value:
    # DuckDB's own function gives null, not zero, for rows whose condition is null.
    return Value(f"count(CASE WHEN {condition(of, node.this).text} THEN 1 END)", Scalar.LONG)


def _any_true(of: Of, node: exp.LogicalOr) -> Value:
    return Value(f"bool_or({condition(of, node.this).text})", Scalar.BOOLEAN)


_RULES: Mapping[type[exp.Expr], Callable[[Of, Any], Value]] = {
    exp.Literal: _literal,
    exp.Boolean: lambda _, node: Value(_TRUE if node.this else _FALSE, Scalar.BOOLEAN),
    exp.Null: lambda _, node: Value("NULL", None),
    exp.Paren: lambda of, node: of(node.this),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    **dict.fromkeys(_COMPARED, _compared),
    exp.Between: _between,
    exp.And: _both,
    exp.Or: _both,
    exp.Not: _not,
    exp.Is: _is_null,
    exp.If: _if,
    exp.In: _in,
    exp.Coalesce: _coalesce,
    exp.ConcatWs: _concat_ws,
    exp.Nullif: _nullif,
    exp.Typeof: _typeof,
    exp.UnixMicros: _micros,
    exp.Min: _extreme,
    exp.Max: _extreme,
    exp.LogicalOr: _any_true,
    exp.Greatest: _furthest,
    exp.Least: _furthest,
    exp.Count: _count,
    exp.CountIf: _count_if,
    **RULES_OF_TEXTS,
    **RULES_OF_NUMBERS,
}

_FUNCTIONS: Mapping[str, Callable[[Of, Any], Value]] = {
    "timestamp_micros": _moment,
    **FUNCTIONS_OF_NUMBERS,
    **FUNCTIONS_OF_SKETCHES,
}
"""Functions that the parser has no class for."""
