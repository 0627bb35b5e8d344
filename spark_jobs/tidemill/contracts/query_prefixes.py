"""Columns of a query with the name of their table before them: `o.n` of `FROM orders o` is `n`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def without_prefix(query: str, select: Any, tokens: list[Any], columns: Collection[str]) -> str:
    """The query without the name or alias of its table before columns.

    A prefix stays where it may mean something else, such as a column with fields inside or the parameter of a function.
    """
    table = select.args["from_"].this
    prefix = (table.alias or table.name).lower()
    if prefix in _meant_otherwise(select, columns):
        return query
    first, last = _of_table(tokens)
    for number in range(len(tokens) - 2, -1, -1):
        token, dot = tokens[number], tokens[number + 1]
        inside = number > 0 and tokens[number - 1].token_type.name == "DOT"
        if first <= number < last or inside or dot.token_type.name != "DOT":
            continue
        if token.token_type.name in ("VAR", "IDENTIFIER") and token.text.lower() == prefix:
            query = query[: token.start] + query[dot.end + 1 :]
    return query


def _meant_otherwise(select: Any, columns: Collection[str]) -> set[str]:
    from sqlglot import exp  # noqa: PLC0415

    parameters = {part.name.lower() for each in select.find_all(exp.Lambda) for part in each.expressions}
    return {*(name.lower() for name in columns), *parameters}


def _of_table(tokens: list[Any]) -> tuple[int, int]:
    """From which token to which the query names its table."""
    kinds = [token.token_type.name for token in tokens]
    first = kinds.index("FROM")
    return first, kinds.index("WHERE", first) if "WHERE" in kinds[first:] else len(kinds)
