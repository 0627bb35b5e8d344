"""The types of what is written in an expression: numbers, texts, intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from tidemill.core.contract.operator_rules import MismatchError
from tidemill.core.contract.sql_types import BOOLEAN, STRING, VOID, SqlType, named
from tidemill.core.sql.interval_fields import written_interval


def _number(node: exp.Expr) -> SqlType:
    text = node.name.lower()
    if not text.isdigit():
        return named("x" if "e" in text else "d")
    return named("i" if int(text) < 2**31 else "l" if int(text) < 2**63 else "d")


def _interval(node: exp.Expr) -> SqlType | None:
    """The type of an interval.

    Raises:
        MismatchError: its size is no constant.
    """
    if not isinstance(node.this, exp.Literal):
        raise MismatchError("the size of an interval is a constant", "multiply: value * interval '1' day")
    name = written_interval(node.sql(dialect="spark"))
    return SqlType(name) if name else None


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
