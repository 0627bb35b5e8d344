"""The audit of rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.contracts.masks import Types, broken
from tidemill.contracts.outcomes import Found, named, of_count, of_rows
from tidemill.core.contract.contract import Contract, Expectation, Holds, RowCountBetween, TableRule, Unique
from tidemill.tables.keys import repeated

Beside = Callable[[Sequence[str]], pa.Table | None]
Where = Callable[[pa.Table, Sequence[str], str], pa.Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What an audit of rows in memory asks others for.

    `beside` gives the rows that the table keeps, for given columns; `where` gives columns of the rows for which a
    predicate in Spark SQL is true.
    """

    beside: Beside
    where: Where


def found_in_memory(
    rows: pa.Table, contract: Contract, shown: Sequence[list[str]], limit: int, around: Around
) -> dict[str, Found]:
    """Check each rule but expectations; `shown` are the columns to show for each rule, of at most `limit` rows."""
    types = {field.name: field.type for field in contract.fields}
    rows = rows.combine_chunks()
    found = {}
    for rule, columns in zip(contract.table_rules, shown, strict=True):
        if isinstance(rule.check, Holds):
            bad = around.where(rows, columns, f"NOT ({rule.check.predicate})")
            found[rule.name] = of_rows(len(bad), len(rows), rule.tolerance, partial(bad.slice, 0, limit))
        elif not isinstance(rule.check, Expectation):
            with named(rule.name):
                found[rule.name] = _checked(
                    rule, rows, types, partial(_first, rows.select(columns), limit), around.beside
                )
    return found


def _first(rows: pa.Table, limit: int, places: pa.Array) -> pa.Table:
    return rows.take(places[:limit])


def _checked(
    rule: TableRule, rows: pa.Table, types: Types, show: Callable[[pa.Array], pa.Table], beside: Beside
) -> Found:
    check = rule.check
    if isinstance(check, RowCountBetween):
        return of_count(check, len(rows), rule.tolerance)
    if isinstance(check, Unique):
        alike = repeated(check.columns, rows, beside(check.columns))
        return of_rows(len(alike), len(rows), rule.tolerance, lambda: show(alike))
    mask = broken(check, rows, types)
    bad = pc.sum(mask).as_py() or 0
    return of_rows(bad, len(rows), rule.tolerance, lambda: show(pc.indices_nonzero(mask)))
