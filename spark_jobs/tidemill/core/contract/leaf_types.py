"""The types of what is written in an expression: numbers, texts, intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from tidemill.core.contract.sql_types import BOOLEAN, STRING, VOID, SqlType, named


def _number(node: exp.Expr) -> SqlType:
    text = node.name.lower()
    if not text.isdigit():
        return named("x" if "e" in text else "d")
    return named("i" if int(text) < 2**31 else "l" if int(text) < 2**63 else "d")


def _interval(node: exp.Expr) -> SqlType | None:
    words = node.sql(dialect="spark").upper()
    months, days = (
        any(w in words for w in each) for each in (("YEAR", "MONTH"), ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND"))
    )
    if months == days or not isinstance(node.this, exp.Literal):
        return None
    return named("Y" if months else "V")


LEAVES: Mapping[type[exp.Expr], Callable[[exp.Expr], SqlType | None]] = {
    exp.Literal: lambda node: STRING if node.is_string else _number(node),
    exp.RawString: lambda _: STRING,
    exp.Concat: lambda _: STRING,
    exp.HexString: lambda _: named("y"),
    exp.Boolean: lambda _: BOOLEAN,
    exp.Null: lambda _: VOID,
    exp.Interval: _interval,
}
"""What gives the types of parts without operands."""
