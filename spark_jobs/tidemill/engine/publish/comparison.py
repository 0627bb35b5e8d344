"""Compares the rows that should be in a table with the rows that are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidemill.core.bind.sinks import SingleSink, StatefulSink, WindowedSink
from tidemill.core.contract.schema import Field, Scalar, ddl
from tidemill.core.sql.text import quoted

MOST_EXAMPLES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One row that differs: it is missing (`found` is None), not expected (`expected` is None), or has other values."""

    expected: Mapping[str, Any] | None
    found: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """How many rows were compared, how many differ, and some of those.

    Of those that differ, `missing` should be there and are not, and `extra` are there and should not be: a row that is
    there twice, too. All others have other values.
    """

    compared: int = 0
    missing: int = 0
    extra: int = 0
    count: int = 0
    examples: tuple[Difference, ...] = ()


def different_windows(
    session: SparkSession, sink: StatefulSink, expected: DataFrame | None, found: DataFrame | None
) -> Differences:
    """Compare rows that are updated, those of windows or of their newest firings, by window and key.

    Doubles may differ in the last places; aggregates that are approximate each time are not compared.
    """
    keys = list(sink.row_key)
    approximate = {name for name, aggregate in sink.aggregates.items() if aggregate.approximate_each_time}
    told = sink.computed if isinstance(sink, WindowedSink) else sink.contract.fields
    fields = [f for f in told if f.name not in approximate]
    left = _columns(session, expected, fields, "e_").selectExpr("*", "true AS e__there", "1 AS e__nth")
    of_key = ", ".join(quoted("f_" + k) for k in keys) or "true"
    # A row that is there once more than it should be matches none.
    nth = f"row_number() OVER (PARTITION BY {of_key} ORDER BY {of_key}) AS f__nth"
    right = _columns(session, found, fields, "f_").selectExpr("*", "true AS f__there", nth)
    on = " AND ".join(f"{quoted('e_' + k)} <=> {quoted('f_' + k)}" for k in (*keys, "_nth"))
    wrong = " OR ".join(["NOT coalesce(e__there, false)", "NOT coalesce(f__there, false)", *map(_unlike, fields)])
    text = f"SELECT *, ({wrong}) AS `wrong` FROM {{expected}} FULL OUTER JOIN {{found}} ON {on}"
    joined = session.sql(text, expected=left, found=right)
    return _counted(joined, fields)


def different_rows(
    session: SparkSession, sink: SingleSink, expected: DataFrame | None, found: DataFrame | None
) -> Differences:
    """Compare rows as multisets, without any key."""
    fields = list(sink.contract.fields)
    left, right = _columns(session, expected, fields, "e_"), _columns(session, found, fields, "f_")
    names = [f.name for f in fields]
    missing = left.toDF(*names).exceptAll(right.toDF(*names))
    extra = right.toDF(*names).exceptAll(left.toDF(*names))
    lost, doubled = missing.count(), extra.count()
    examples = [Difference(expected=r.asDict(), found=None) for r in missing.limit(MOST_EXAMPLES).collect()]
    examples += [Difference(expected=None, found=r.asDict()) for r in extra.limit(MOST_EXAMPLES).collect()]
    return Differences(
        compared=left.count(),
        missing=lost,
        extra=doubled,
        count=lost + doubled,
        examples=tuple(examples[:MOST_EXAMPLES]),
    )


def _columns(session: SparkSession, rows: DataFrame | None, fields: list[Field], prefix: str) -> DataFrame:
    if rows is None:
        rows = session.createDataFrame([], ddl(tuple(fields)))
    return rows.selectExpr(*(f"{quoted(f.name)} AS {quoted(prefix + f.name)}" for f in fields))


def _unlike(field: Field) -> str:
    e, f = quoted("e_" + field.name), quoted("f_" + field.name)
    if field.type is Scalar.DOUBLE:
        return f"NOT coalesce({e} <=> {f} OR abs({e} - {f}) <= 1e-9 * greatest(abs({e}), abs({f})), false)"
    return f"NOT ({e} <=> {f})"


def _counted(joined: DataFrame, fields: list[Field]) -> Differences:
    sides = ("count_if(f__there IS NULL) AS missing", "count_if(e__there IS NULL) AS extra")
    counted = joined.selectExpr("count(1) AS n", "count_if(`wrong`) AS wrong", *sides).collect()[0]
    examples = joined.where("`wrong`").limit(MOST_EXAMPLES).collect() if counted["wrong"] else []
    return Differences(
        compared=counted["n"],
        missing=counted["missing"],
        extra=counted["extra"],
        count=counted["wrong"],
        examples=tuple(_difference(r.asDict(), fields) for r in examples),
    )


def _difference(row: Mapping[str, Any], fields: list[Field]) -> Difference:
    sides = {p: {f.name: row[p + f.name] for f in fields} if row[f"{p}_there"] else None for p in ("e_", "f_")}
    return Difference(expected=sides["e_"], found=sides["f_"])
