"""Parses Spark SQL into a tree. It loads sqlglot, which takes 65 ms: import this module only where SQL is parsed."""

from __future__ import annotations

from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY")
"""Functions whose arguments are not a plain list, such as CAST(x AS INT)."""


class OwnSpark(Spark):
    """sqlglot's Spark, with texts as Spark reads them: in quotes, a doubled quote is one, `'it''s'`."""

    class Tokenizer(Spark.Tokenizer):
        """Texts and their escapes."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']


class Written(OwnSpark):
    """Spark SQL as it is written: functions keep their names, and words without brackets are columns.

    sqlglot's own dialect renames functions, so that they can be translated to other databases.
    """

    class Parser(SparkParser):
        """A parser that knows no functions except those with a syntax of their own."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {n: SparkParser.FUNCTION_PARSERS[n] for n in _SYNTAX}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
        # Spark has no ARRAY[0]: in `array(i, j)[0]`, the brackets take an item of what a function gives.
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}


def tokens_of(text: str) -> list[sqlglot.Token]:
    """The tokens of a text; comments are attributes of tokens.

    Raises:
        ValueError: the text cannot be tokenized.
    """
    try:
        return Written().tokenize(text)
    except SqlglotError:
        raise ValueError("a quote without its partner") from None


def tree_of(text: str) -> exp.Expr:
    """The tree of one expression.

    Raises:
        ValueError: the text is not one expression of the SQL that this dialect knows.
        RecursionError: it is nested too deeply.
    """
    try:
        return sqlglot.parse_one(text, dialect=Written, into=exp.Condition)
    except SqlglotError as error:
        raise ValueError(_what(error)) from None


def _what(error: SqlglotError) -> str:
    """The parser's message, with the character where the error is."""
    details = error.errors[-1] if isinstance(error, ParseError) and error.errors else {}
    what, column = details.get("description"), details.get("col")
    if not what or "sqlglot." in what:
        return "it ends too early, or is more than one expression"
    # Some of the parser's messages go on with a token as Python shows it.
    what = what.partition(" but got <Token")[0]
    return f"{what} at character {column}" if column else what
