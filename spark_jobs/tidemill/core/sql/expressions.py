"""Which columns and functions an SQL expression of a declaration or a contract uses, without an SQL engine.

A declaration is checked before Spark starts. So a misspelt column fails where it is written, and so does a function
that may give another result when a batch is computed again. Only Spark checks types
(`tidemill.engine.aggregate.types`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from tidemill.core.errors import DeclarationError
from tidemill.core.sql.interval_literals import fault_of_intervals
from tidemill.core.sql.number_literals import check_numbers
from tidemill.core.sql.token_faults import check_words_and_signs

if TYPE_CHECKING:
    from sqlglot import Token

    from tidemill.core.sql.syntax import Parsed

_TEXTS = ("STRING", "RAW_STRING", "IDENTIFIER")
_MOST_NESTED, _LONGEST = 30, 20_000
_BARE, _QUOTED = re.compile(r"[A-Za-z_]\w*"), re.compile(r"`(?:[^`]|``)+`")
_CONSTANTS = ("null", "true", "false")
_UNIT_INSIDE = re.compile("[A-Za-z]{3}")
_PLACEHOLDER = re.compile(r"\{(\w*)\}")


def columns_of(expression: str) -> frozenset[str]:
    """The columns that an expression over one row reads, spelled as in the expression.

    Raises:
        DeclarationError: the text is not one expression, or uses what `parsed` does not allow.
    """
    return parsed(expression).columns


@lru_cache(maxsize=4096)
def parsed(expression: str, *, aggregates: bool = False) -> Parsed:
    """What an expression reads and calls; with `aggregates`, it may use functions of a group of rows.

    Raises:
        DeclarationError: the text is not one expression; or it calls a function that is not allowed
            (`tidemill.core.sql.functions`), looks beyond its row, or is too long or nested too deeply.
    """
    # Imported late: parsing a DAG and most commands need no SQL parser.
    from tidemill.core.sql.dialect import tokens_of, tree_of
    from tidemill.core.sql.syntax import Walk

    if len(expression) > _LONGEST:
        raise DeclarationError(
            f"an expression has at most {_LONGEST} characters, found {len(expression)}",
            fix="split it with with_columns",
        )
    try:
        expression.encode()
        tokens = tokens_of(expression)
        _check_tokens(tokens, expression)
        # sqlglot also gives this token for a number such as 1L, where nobody wrote `::`.
        casts = any(t.token_type.name == "DCOLON" and expression[t.start : t.end + 1] == "::" for t in tokens)
        return Walk(expression, aggregates=aggregates, casts=casts).of(tree_of(expression))
    except UnicodeEncodeError:
        raise DeclarationError(f"half a character in {expression!r}", fix="write the character itself") from None
    except ValueError as error:
        fix = _instead(expression)
        raise DeclarationError(f"not an SQL expression: {expression!r}: {error}", fix=fix) from None
    except RecursionError:
        raise _too_deep(expression) from None


def _instead(expression: str) -> str:
    """What to do about words of SQL that are meant as columns or as functions; empty if there are none."""
    from tidemill.core.sql.reserved_words import called_operator, meant_as_columns

    if (called := called_operator(expression)) is not None:
        return called
    words = ", ".join(f"`{word}`" for word in meant_as_columns(expression))
    return f"put the names of columns that are words of SQL in backticks: {words}" if words else ""


def _check_tokens(tokens: list[Token], expression: str) -> None:
    """The text becomes part of a statement: it must not end the statement, hide the rest of it, or reach beyond it."""
    if not tokens:
        raise DeclarationError(f"expected one SQL expression, found {expression!r}")
    if any(token.comments for token in tokens):
        raise DeclarationError(f"a comment would hide what follows it, found in {expression!r}")
    if "${" in expression:
        raise DeclarationError(
            f"Spark replaces `${{...}}` by settings of the machine, found in {expression!r}",
            fix="write the value itself; for a pattern write [$][{]",
        )
    depth = 0
    for token in tokens:
        text = "" if token.token_type.name in _TEXTS else token.text.upper()
        depth += (text in ("(", "[", "CASE")) - (text in (")", "]") or (text == "END" and depth > 0))
        if text == ";":
            raise DeclarationError(f"`;` ends a statement, but an expression is only a part of one: {expression!r}")
        if depth > _MOST_NESTED:
            raise _too_deep(expression)
    check_numbers(tokens, expression)
    if fault := fault_of_intervals(tokens):
        raise DeclarationError(
            f"Spark reads no such interval in {expression!r}: {fault}",
            fix="write interval '1' day, or interval 2 hours",
        )
    check_words_and_signs(tokens, expression)
    _check_words(tokens)
    brackets = [t.text for t in tokens if t.token_type.name in ("L_PAREN", "R_PAREN", "L_BRACKET", "R_BRACKET")]
    if not _is_balanced(brackets):
        raise DeclarationError(f"a bracket without its partner in {expression!r}", fix="close every bracket")


def _check_words(tokens: list[Token]) -> None:
    """Refuse words that Spark reads as column names, but that sqlglot reads as syntax of a function and drops."""
    texts = ["", *("" if t.token_type.name in _TEXTS else t.text.upper() for t in tokens), ""]
    for word, sign, value in zip(texts[1:], texts[2:], tokens[2:], strict=False):
        # `interval '1 day'` is a constant, but in `interval - '1 day'` Spark reads a column and subtracts a text.
        if (
            word == "INTERVAL"
            and sign in ("+", "-")
            and value.token_type.name == "STRING"
            and _UNIT_INSIDE.search(value.text)
        ):
            raise ValueError("`interval` is a word of SQL here")
    for before, word, after in zip(texts, texts[1:], texts[2:], strict=False):
        if before != "." and (
            (word == "ALL" and after != "(")
            or (word == "DISTINCT" and after in (")", ",", ""))
            or (word == "AS" and before in ("(", ","))
        ):
            raise ValueError(f"`{word.lower()}` is a word of SQL here")


def _is_balanced(brackets: Iterable[str]) -> bool:
    opened: list[str] = []
    for bracket in brackets:
        if bracket in "([":
            opened.append(bracket)
        elif not opened or opened.pop() + bracket not in ("()", "[]"):
            return False
    return not opened


def _too_deep(expression: str) -> DeclarationError:
    shown = expression if len(expression) <= 80 else f"{expression[:77]}..."
    return DeclarationError(
        f"an expression is nested at most {_MOST_NESTED} deep, found {shown!r}", fix="split it with with_columns"
    )


def filled(text: str, names: Mapping[str, str]) -> str:
    """The `merge` or `finish` of an aggregate, with each `{name}` replaced by `names[name]`.

    Raises:
        DeclarationError: a `{name}` is not in `names`.
    """

    def name_of(match: re.Match[str]) -> str:
        if match[1] not in names:
            raise DeclarationError(
                f"there is no state column `{match[1]}` for {text!r}; there are: {', '.join(names)}",
                fix="a name in curly brackets is one of `partial`",
            )
        return names[match[1]]

    return _PLACEHOLDER.sub(name_of, text)


def named_alone(expression: str) -> str | None:
    """The name of the column if the expression is just one column; None otherwise."""
    bare = expression.strip()
    if _BARE.fullmatch(bare):
        return bare if bare.lower() not in _CONSTANTS else None
    return bare[1:-1].replace("``", "`") if _QUOTED.fullmatch(bare) else None


def compared(expression: str) -> tuple[str, str, str] | None:
    """Left column, operator and right column if the expression just compares two columns; None otherwise.

    Raises:
        DeclarationError: the text is not one expression, or uses what `parsed` does not allow.
    """
    from tidemill.core.sql.dialect import tree_of
    from tidemill.core.sql.syntax_parts import comparison

    parsed(expression)
    return comparison(tree_of(expression))
