"""The audit of a Spark data frame: its workers count with the masks that check rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.contracts.beside import Beside
from tidemill.contracts.masks import broken, is_of_rows
from tidemill.contracts.outcomes import Found, columns_of, named, of_count, of_rows
from tidemill.core.contract.contract import Check, Contract, Expectation, Holds, RowCountBetween, TableRule, Unique
from tidemill.core.contract.exact_sums import exact
from tidemill.core.contract.schema import DataType
from tidemill.core.contract.scope import Scope
from tidemill.core.sql.text import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_Batches = Iterator[pa.RecordBatch]
_COUNTED = "`row_count` bigint, `bad` array<bigint>"
_ALIKE, _BESIDE = "rows alike", "row beside"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """The rows, how many they are, and how many of them break each rule about one row."""

    rows: DataFrame
    types: Mapping[str, DataType]
    count: int
    bad: Mapping[str, int]

    def bad_of(self, rule: TableRule) -> int:
        """How many of the rows break a rule about one row."""
        if isinstance(rule.check, Holds):
            return self.broken(rule.check).count()
        return self.bad[rule.name]

    def broken(self, check: Holds) -> DataFrame:
        """The rows for which a predicate is false."""
        return self.rows.filter(f"NOT ({exact(check.predicate, self.types).sql})")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """The staged rows, all rows that the table keeps for rules about it, and where else to ask for some of them."""

    staged: _Counted
    kept: _Counted | None
    beside: Beside


def found_on_spark(
    rows: DataFrame,
    contract: Contract,
    shown: Sequence[list[str]],
    limit: int,
    beside: Beside,
) -> dict[str, Found]:
    """As `found_in_memory`. The frame is computed once, and persisted until the call ends."""
    rules = [(r, names) for r, names in zip(contract.table_rules, shown, strict=True) if not _is_computed(r)]
    if not rules:
        return {}
    types = {field.name: field.type for field in contract.fields}
    used = {c for rule, names in rules for c in (*columns_of(rule.check), *names)}
    staged = rows.selectExpr(*(quoted(c) for c in sorted(used))).persist()
    try:
        counted = _counted(staged, [rule for rule, _ in rules], types)
        kept = _kept([rule for rule, _ in rules if rule.scope is Scope.TABLE], types, beside)
        looked = _Looked(staged=counted, kept=kept, beside=beside)
        return {rule.name: _of_rule(looked, rule, names, limit) for rule, names in rules}
    finally:
        staged.unpersist()


def of_scope(rows: DataFrame, beside: Beside, scope: Scope, columns: list[str]) -> DataFrame:
    """Columns of the staged rows; with the scope TABLE of all rows."""
    kept = beside.kept(columns) if scope is Scope.TABLE else iter(())
    return reduce(lambda one, other: one.unionByName(other), kept, rows.select(columns))


def _kept(rules: Sequence[TableRule], types: Mapping[str, DataType], beside: Beside) -> _Counted | None:
    """The rows that a table keeps, with the columns that these rules read; None when there are no rules or no rows."""
    columns = sorted({column for rule in rules for column in columns_of(rule.check)})
    parts = list(beside.kept(columns)) if rules else []
    frame = reduce(lambda one, other: one.unionByName(other), parts) if parts else None
    return None if frame is None else _counted(frame, rules, types)


def _of_rule(looked: _Looked, rule: TableRule, columns: list[str], limit: int) -> Found:
    staged, kept = looked.staged, looked.kept if rule.scope is Scope.TABLE else None
    count = staged.count + (kept.count if kept else 0)
    if not isinstance(rule.check, Unique):
        return _checked(staged, kept, rule, columns, limit)
    if rule.scope is Scope.BATCH:
        bad = own = _alike(staged.rows, rule.check.columns, looked.beside.rows(rule.check.columns))
    else:
        bad = _alike(staged.rows, rule.check.columns, kept.rows if kept else None, whole=True)
        own = bad.filter(f"NOT {quoted(_BESIDE)}")
    return of_rows(bad.count(), count, rule.tolerance, _some(own, columns, limit))


def _is_computed(rule: TableRule) -> bool:
    return isinstance(rule.check, Expectation)


def _counted(kept: DataFrame, rules: Sequence[TableRule], types: Mapping[str, DataType]) -> _Counted:
    masked = [(rule.name, rule.check) for rule in rules if is_of_rows(rule.check)]
    found = kept.mapInArrow(_counter(masked, types), _COUNTED).toArrow()
    lists = found.column("bad").to_pylist()
    bad = {name: sum(counts[n] for counts in lists) for n, (name, _) in enumerate(masked)}
    return _Counted(rows=kept, types=types, count=pc.sum(found.column("row_count")).as_py() or 0, bad=bad)


def _counter(checks: Sequence[tuple[str, Check]], types: Mapping[str, DataType]) -> Callable[[_Batches], _Batches]:
    def count(batches: _Batches) -> _Batches:
        for batch in batches:
            bad = []
            for name, check in checks:
                with named(name):
                    bad.append(pc.sum(broken(check, batch, types)).as_py() or 0)
            listed = pa.array([bad], pa.list_(pa.int64()))
            yield pa.RecordBatch.from_arrays([pa.array([len(batch)], pa.int64()), listed], ["row_count", "bad"])

    return count


def _checked(counted: _Counted, kept: _Counted | None, rule: TableRule, columns: list[str], limit: int) -> Found:
    check, staged = rule.check, counted.rows
    count = counted.count + (kept.count if kept else 0)
    if isinstance(check, RowCountBetween):
        return of_count(check, count, rule.tolerance)
    own = counted.bad_of(rule)
    if isinstance(check, Holds):
        bad = counted.broken(check)
    else:
        bad = staged.mapInArrow(_picker(check, counted.types), staged.schema) if own else staged.limit(0)
    return of_rows(own + (kept.bad_of(rule) if kept else 0), count, rule.tolerance, _some(bad, columns, limit))


def _some(bad: DataFrame, columns: list[str], limit: int) -> Callable[[], pa.Table]:
    return bad.selectExpr(*(quoted(c) for c in columns)).limit(limit).toArrow


def _alike(staged: DataFrame, columns: Sequence[str], beside: DataFrame | None, *, whole: bool = False) -> DataFrame:
    """The rows that agree with another one, or with one of `beside`, in all of these columns.

    They are marked by whether they are of `beside`, and only with `whole` such rows are among them.
    """
    names = [quoted(c) for c in columns]
    rows = staged.selectExpr("*", f"false AS {quoted(_BESIDE)}")
    if beside is not None:
        there = beside.selectExpr(*names)
        if not whole:
            there = there.join(staged.selectExpr(*names).distinct(), list(columns), "left_semi")
        rows = rows.unionByName(there.selectExpr("*", f"true AS {quoted(_BESIDE)}"), allowMissingColumns=True)
    named_ = rows.filter(" AND ".join(f"{name} IS NOT NULL" for name in names))
    counted = named_.selectExpr("*", f"count(1) OVER (PARTITION BY {', '.join(names)}) AS {quoted(_ALIKE)}")
    return counted.filter(f"{quoted(_ALIKE)} > 1" + ("" if whole else f" AND NOT {quoted(_BESIDE)}"))


def _picker(check: Check, types: Mapping[str, DataType]) -> Callable[[_Batches], _Batches]:
    def pick(batches: _Batches) -> _Batches:
        for batch in batches:
            yield batch.filter(broken(check, batch, types))

    return pick
