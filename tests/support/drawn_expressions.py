"""Expressions that random pipelines are made of, each beside a Python function that gives the same.

A function of a row gets its columns by name, None for null. A condition gives True, False, or None for unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

Row = Mapping[str, Any]
OfRow = Callable[[Row], Any]

LEAST, MOST = -(2**63), 2**63 - 1


class Overflow(Exception):
    """A number leaves 64 bits, and the batch fails."""


class Computed(NamedTuple):
    """An aggregate: the type of its column in a contract, the columns it reads, and its value over some rows."""

    type: str
    reads: tuple[str, ...]
    of: Callable[[Sequence[Row]], Any]


def strict(function: Callable[..., Any], *columns: str) -> OfRow:
    """A function of columns that is null when one of them is."""

    def of(row: Row) -> Any:
        values = [row[column] for column in columns]
        return None if None in values else function(*values)

    return of


def either(*values: bool | None) -> bool | None:
    """True if one of them is, else null if one is null: the OR of SQL."""
    return True if True in values else None if None in values else False


def both(*values: bool | None) -> bool | None:
    """False if one of them is, else null if one is null: the AND of SQL."""
    return False if False in values else None if None in values else True


def first(*values: Any) -> Any:
    """The first value that is not null."""
    return next((value for value in values if value is not None), None)


def furthest(pick: Callable[[Any], Any], *values: Any) -> Any:
    """`max` or `min` of the values that are not null."""
    there = [value for value in values if value is not None]
    return pick(there) if there else None


def fits(number: int, bits: int = 64) -> int | None:
    """The number, or null if it needs more bits."""
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def checked(number: int) -> int:
    """The number, if it has 64 bits."""
    if fits(number) is None:
        raise Overflow
    return number


def divided(number: int, by: int) -> int:
    """Division that rounds towards zero."""
    return abs(number) // by * (1 if number >= 0 else -1)


def is_one_of(value: Any, others: Sequence[Any]) -> bool | None:
    """Whether a value equals one of some: the IN of SQL."""
    return None if value is None else either(*(None if other is None else value == other for other in others))


FILTERS: Mapping[str, OfRow] = {
    "i > 0": strict(lambda i: i > 0, "i"),
    "NOT f": strict(lambda f: not f, "f"),
    "t LIKE 'a%' OR t IS NULL": lambda row: row["t"] is None or row["t"].startswith("a"),
    "u <> t": strict(lambda u, t: u != t, "u", "t"),
    "a IN (1, 2, 3, 5, 8)": lambda row: is_one_of(row["a"], (1, 2, 3, 5, 8)),
    "length(t) < 4": strict(lambda t: len(t) < 4, "t"),
    "p > i": strict(lambda p, i: p > i, "p", "i"),
    "i BETWEEN -1 AND 7": strict(lambda i: -1 <= i <= 7, "i"),
    "f OR i > 0": lambda row: either(row["f"], strict(lambda i: i > 0, "i")(row)),
    "NOT (f AND a > 4)": lambda row: negated(both(row["f"], strict(lambda a: a > 4, "a")(row))),
    "t NOT IN ('a', u)": lambda row: negated(is_one_of(row["t"], ("a", row["u"]))),
    "coalesce(f, i > 3)": lambda row: first(row["f"], strict(lambda i: i > 3, "i")(row)),
    "u IS NULL OR NOT contains(u, '?')": lambda row: row["u"] is None or "?" not in row["u"],
    "try_multiply(a, 4L) IS NOT NULL": lambda row: row["a"] is not None and fits(row["a"] * 4) is not None,
    "p >= -1.5": strict(lambda p: p >= Decimal("-1.5"), "p"),
}


def negated(value: bool | None) -> bool | None:
    """The NOT of SQL."""
    return None if value is None else not value


COLUMNS: Mapping[str, Mapping[str, OfRow]] = {
    "x": {
        "split(t, '[?]')[0]": strict(lambda t: t.split("?")[0], "t"),
        "coalesce(t, u, '')": lambda row: first(row["t"], row["u"], ""),
        "t || u": strict(lambda t, u: t + u, "t", "u"),
        "CASE WHEN f THEN 'yes' ELSE u END": lambda row: "yes" if row["f"] else row["u"],
        "CAST(i AS STRING)": strict(str, "i"),
        "concat_ws('/', t, u)": lambda row: "/".join(text for text in (row["t"], row["u"]) if text is not None),
        "nullif(u, 'a')": lambda row: None if row["u"] == "a" else row["u"],
        "greatest(t, u)": lambda row: furthest(max, row["t"], row["u"]),
        "if(a > 4, t, NULL)": lambda row: row["t"] if row["a"] is not None and row["a"] > 4 else None,
        "CAST(a AS STRING)": strict(str, "a"),
    },
    "y": {
        "if(f, i, a)": lambda row: row["i"] if row["f"] else row["a"],
        "greatest(i, a, 0L)": lambda row: furthest(max, row["i"], row["a"], 0),
        "least(i, a)": lambda row: furthest(min, row["i"], row["a"]),
        "a div 7L": strict(lambda a: divided(a, 7), "a"),
        "pmod(a, 10L)": strict(lambda a: a % 10, "a"),
        "CAST(f AS BIGINT)": strict(int, "f"),
        "try_add(a, 1L)": strict(lambda a: fits(a + 1), "a"),
        "try_multiply(a, -3L)": strict(lambda a: fits(a * -3), "a"),
        "a + 1L": strict(lambda a: checked(a + 1), "a"),
        "a | 6L": strict(lambda a: a | 6, "a"),
        "a & 255L": strict(lambda a: a & 255, "a"),
        "shiftright(a, 32)": strict(lambda a: a >> 32, "a"),
        "CAST(try_cast(a AS INT) AS BIGINT)": strict(lambda a: fits(a, 32), "a"),
        "CAST(length(t) AS BIGINT)": strict(len, "t"),
        "coalesce(a, i, -9223372036854775808)": lambda row: first(row["a"], row["i"], LEAST),
        "CASE WHEN f THEN a WHEN i > 3 THEN -1L ELSE i END": lambda row: (
            row["a"] if row["f"] else -1 if (row["i"] or 0) > 3 else row["i"]
        ),
    },
}
"""Columns that a pipeline adds, each with its possible expressions; none of them sees another one."""

MAY_FAIL = "a + 1L"
"""The expression that fails a batch when a number is too large."""


def values(rows: Sequence[Row], column: str) -> list[Any]:
    """The values of a column that are not null."""
    return [row[column] for row in rows if row[column] is not None]


def total(column: str, beyond: Callable[[int], int | None]) -> Callable[[Sequence[Row]], Any]:
    """A sum of whole numbers, null without one; `beyond` says what it is if it needs more than 64 bits."""

    def of(rows: Sequence[Row]) -> Any:
        there = values(rows, column)
        return None if not there else beyond(sum(there))

    return of


def extreme(pick: Callable[[Any], Any], column: str) -> Callable[[Sequence[Row]], Any]:
    """The least or the greatest value of a column; texts in the order of their code points."""
    return lambda rows: furthest(pick, *values(rows, column))


def nearest(number: int) -> int:
    """The nearest number of 64 bits."""
    return max(LEAST, min(number, MOST))


AGGREGATES: Mapping[str, Computed] = {
    "Count()": Computed("integer", (), len),
    'Count("t")': Computed("integer", ("t",), lambda rows: len(values(rows, "t"))),
    'CountIf("f")': Computed("integer", ("f",), lambda rows: sum(values(rows, "f"))),
    'CountIf("y BETWEEN 0 AND 5")': Computed(
        "integer", ("y",), lambda rows: sum(0 <= y <= 5 for y in values(rows, "y"))
    ),
    'Sum("i")': Computed("integer", ("i",), total("i", nearest)),
    'Sum("a")': Computed("integer", ("a",), total("a", nearest)),
    'Sum("y", overflow="null")': Computed("integer", ("y",), total("y", fits)),
    'Sum("p")': Computed('number, physicalType: "decimal(20,2)"', ("p",), total("p", lambda p: p)),
    'Min("x")': Computed("string", ("x",), extreme(min, "x")),
    'Max("u")': Computed("string", ("u",), extreme(max, "u")),
    'Max("d")': Computed("date", ("d",), extreme(max, "d")),
    'Min("i")': Computed("integer, physicalType: int", ("i",), extreme(min, "i")),
    'Max("y")': Computed("integer", ("y",), extreme(max, "y")),
    'Min("p")': Computed('number, physicalType: "decimal(10,2)"', ("p",), extreme(min, "p")),
    'Max("coalesce(length(x), 9)")': Computed(
        "integer, physicalType: int",
        ("x",),
        lambda rows: furthest(max, *(9 if r["x"] is None else len(r["x"]) for r in rows)),
    ),
    # A sketch of so few values is exact. Spark's sketches do not count the empty text.
    'ApproxDistinct("x")': Computed("integer", ("x",), lambda rows: len({x for x in values(rows, "x") if x})),
}
