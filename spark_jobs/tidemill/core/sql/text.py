"""Builds text of Spark SQL: names, literals and statements."""

from __future__ import annotations

from collections.abc import Iterable


def quoted(column: str, quote: str = "`") -> str:
    """A column's name, quoted for Spark SQL; `quote` is another quote for another SQL."""
    return f"{quote}{column.replace(quote, quote * 2)}{quote}"


def text_literal(text: str) -> str:
    r"""A text as a Spark SQL literal; backslashes and quotes are escaped."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + "'"


def renamed(expression: str, name: str) -> str:
    """An expression as a column of a `select`."""
    return f"{expression} AS {quoted(name)}"


def select(columns: Iterable[str], source: str, *, where: str = "", group_by: Iterable[str] = ()) -> str:
    """A SELECT statement over `source`, which is a name or another statement.

    `columns` are SQL as it stands after SELECT; `group_by` are names, which are quoted here.
    """
    grouping = ", ".join(quoted(name) for name in group_by)
    parts = [
        f"SELECT {', '.join(columns)}",
        f"FROM ({source})" if source.startswith("SELECT ") else f"FROM {source}",
        f"WHERE {where}" if where else "",
        f"GROUP BY {grouping}" if grouping else "",
    ]
    return "\n".join(part for part in parts if part)
