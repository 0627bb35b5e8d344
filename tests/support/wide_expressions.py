"""More expressions for random pipelines: doubles, arrays, and aggregates that keep values, most of them Spark's alone.

Doubles are multiples of 0.25 and small, so that sums of them are exact in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from support.drawn_expressions import Computed, OfRow, Row, extreme, furthest, strict, total, values


def contains(items: Sequence[Any] | None, wanted: Any) -> bool | None:
    """Whether an array has a value: null if it does not, but has a null."""
    if items is None:
        return None
    return True if wanted in items else None if None in items else False


def divided(row: Row) -> float | None:
    """`r` by 0 or 4; null for 0."""
    by = max(row["i"] or 0, 0) & 4
    return None if row["r"] is None or not by else row["r"] / by


def average(rows: Sequence[Row], column: str) -> float | None:
    """The mean of whole numbers, which a double holds exactly."""
    there = values(rows, column)
    return sum(there) / len(there) if there else None


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Rows by event time, then by their place in the log."""
    return sorted(rows, key=lambda row: row["_place"])


WIDE_FILTERS: Mapping[str, OfRow] = {
    "r > 0.25D": strict(lambda r: r > 0.25, "r"),
    "r <= i": strict(lambda r, i: r <= i, "r", "i"),
    "array_contains(l, 'a')": lambda row: contains(row["l"], "a"),
    "size(l) < 3": strict(lambda items: len(items) < 3, "l"),
}

WIDE_COLUMNS: Mapping[str, Mapping[str, OfRow]] = {
    "w": {
        "r * 2": strict(lambda r: r * 2, "r"),
        "CAST(i AS DOUBLE)": strict(float, "i"),
        "r - i": strict(lambda r, i: r - i, "r", "i"),
        "try_divide(r, greatest(i, 0) & 4)": divided,
        "greatest(r, -1.5D)": lambda row: furthest(max, row["r"], -1.5),
        "CASE WHEN f THEN r ELSE 0.5D END": lambda row: row["r"] if row["f"] else 0.5,
    },
    "k": {
        "l": lambda row: row["l"],
        "array(t, u)": lambda row: [row["t"], row["u"]],
        "filter(l, e -> e <> 'a')": strict(lambda items: [e for e in items if e is not None and e != "a"], "l"),
        "slice(l, 1, 2)": strict(lambda items: items[:2], "l"),
    },
}


WIDE_AGGREGATES: Mapping[str, Computed] = {
    'Min("r")': Computed("number", ("r",), extreme(min, "r")),
    'Max("w")': Computed("number", ("w",), extreme(max, "w")),
    'Sum("w")': Computed("number", ("w",), total("w", lambda w: w)),
    'Average("i")': Computed("number", ("i",), lambda rows: average(rows, "i")),
    'CountIf("size(k) > 1")': Computed(
        "integer", ("k",), lambda rows: sum(k is not None and len(k) > 1 for k in (row["k"] for row in rows))
    ),
    'First("t")': Computed("string", ("t",), lambda rows: in_order(rows)[0]["t"]),
    'Last("w")': Computed("number", ("w",), lambda rows: in_order(rows)[-1]["w"]),
    'Last("k")': Computed("array, items: {logicalType: string}", ("k",), lambda rows: in_order(rows)[-1]["k"]),
    'Distinct("u")': Computed("integer", ("u",), lambda rows: len(set(values(rows, "u")))),
    'Collect("t")': Computed("array, items: {logicalType: string}", ("t",), lambda rows: values(in_order(rows), "t")),
}
