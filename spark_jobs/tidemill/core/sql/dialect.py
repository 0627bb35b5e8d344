"""Text of Spark SQL as a tree. It loads sqlglot, which takes 65 ms: import this module only where text is looked at."""

from __future__ import annotations

from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY")
"""Functions whose arguments are not a plain list."""


class Written(Spark):
    """Spark's SQL as it is written: functions keep their names, and words without brackets are columns.

    sqlglot's own dialect gives functions other names, so that they mean the same in other databases.
    """

    class Parser(SparkParser):
        """Without anything that is known about functions, but for those with a syntax of their own."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {n: SparkParser.FUNCTION_PARSERS[n] for n in _SYNTAX}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}


def tokens_of(text: str) -> list[sqlglot.Token]:
    """The tokens of a text; comments hang on them.

    Raises:
        ValueError: the text cannot be cut into tokens.
    """
    try:
        return Written().tokenize(text)
    except SqlglotError:
        raise ValueError("a quote without its partner") from None


def tree_of(text: str) -> exp.Expr:
    """The tree of one expression.

    Raises:
        ValueError: the text is not one expression of the SQL that is known here.
        RecursionError: it is nested too deeply.
    """
    try:
        return sqlglot.parse_one(text, dialect=Written, into=exp.Condition)
    except SqlglotError as error:
        raise ValueError(_what(error)) from None


def _what(error: SqlglotError) -> str:
    """What is wrong, and at which character."""
    details = error.errors[-1] if isinstance(error, ParseError) and error.errors else {}
    what, column = details.get("description"), details.get("col")
    if not what or "sqlglot." in what:
        return "it ends too early, or is more than one expression"
    return f"{what} at character {column}" if column else what
