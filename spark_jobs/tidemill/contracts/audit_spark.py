"""The audit of a Spark data frame: its workers count with the masks that check rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.contracts.masks import broken, is_of_rows
from tidemill.contracts.outcomes import Found, columns_of, named, of_count, of_rows
from tidemill.core.contract.contract import Check, Contract, Expectation, Holds, RowCountBetween, TableRule, Unique
from tidemill.core.contract.schema import DataType
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


def found_on_spark(
    rows: DataFrame,
    contract: Contract,
    shown: Sequence[list[str]],
    limit: int,
    beside: Callable[[Sequence[str]], DataFrame | None],
) -> dict[str, Found]:
    """As `found_in_memory`. The frame is computed once, and persisted until the call ends."""
    rules = [(r, names) for r, names in zip(contract.table_rules, shown, strict=True) if not _is_computed(r)]
    if not rules:
        return {}
    used = {c for rule, names in rules for c in (*columns_of(rule.check), *names)}
    kept = rows.selectExpr(*(quoted(c) for c in sorted(used))).persist()
    try:
        counted = _counted(kept, [rule for rule, _ in rules], {field.name: field.type for field in contract.fields})
        return {
            rule.name: _repeated(counted, rule, names, limit, beside(rule.check.columns))
            if isinstance(rule.check, Unique)
            else _checked(counted, rule, names, limit)
            for rule, names in rules
        }
    finally:
        kept.unpersist()


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


def _checked(counted: _Counted, rule: TableRule, columns: list[str], limit: int) -> Found:
    check, kept = rule.check, counted.rows
    if isinstance(check, RowCountBetween):
        return of_count(check, counted.count, rule.tolerance)
    if isinstance(check, Holds):
        false = kept.filter(f"NOT ({check.predicate})")
        return of_rows(false.count(), counted.count, rule.tolerance, _some(false, columns, limit))
    number = counted.bad[rule.name]
    bad = kept.mapInArrow(_picker(check, counted.types), kept.schema) if number else kept
    return of_rows(number, counted.count, rule.tolerance, _some(bad, columns, limit))


def _some(bad: DataFrame, columns: list[str], limit: int) -> Callable[[], pa.Table]:
    return bad.selectExpr(*(quoted(c) for c in columns)).limit(limit).toArrow


def _repeated(counted: _Counted, rule: TableRule, columns: list[str], limit: int, beside: DataFrame | None) -> Found:
    assert isinstance(rule.check, Unique)
    bad = _alike(counted.rows, rule.check.columns, beside)
    return of_rows(bad.count(), counted.count, rule.tolerance, _some(bad, columns, limit))


def _alike(kept: DataFrame, columns: Sequence[str], beside: DataFrame | None) -> DataFrame:
    """The rows that agree with another one, or with one of `beside`, in all of these columns."""
    names = [quoted(c) for c in columns]
    rows = kept.selectExpr("*", f"false AS {quoted(_BESIDE)}")
    if beside is not None:
        there = beside.selectExpr(*names).join(kept.selectExpr(*names).distinct(), list(columns), "left_semi")
        rows = rows.unionByName(there.selectExpr("*", f"true AS {quoted(_BESIDE)}"), allowMissingColumns=True)
    whole = rows.filter(" AND ".join(f"{name} IS NOT NULL" for name in names))
    counted = whole.selectExpr("*", f"count(1) OVER (PARTITION BY {', '.join(names)}) AS {quoted(_ALIKE)}")
    return counted.filter(f"{quoted(_ALIKE)} > 1 AND NOT {quoted(_BESIDE)}")


def _picker(check: Check, types: Mapping[str, DataType]) -> Callable[[_Batches], _Batches]:
    def pick(batches: _Batches) -> _Batches:
        for batch in batches:
            yield batch.filter(broken(check, batch, types))

    return pick
