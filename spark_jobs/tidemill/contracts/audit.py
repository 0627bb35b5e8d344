"""The audit of staged rows: checks every table rule of a contract before readers can see the rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.contracts.audit_arrow import Around, Kept, found_in_memory
from tidemill.contracts.beside import Beside, Nothing, Where, scope_of
from tidemill.contracts.exact_statistics import exact_statistics
from tidemill.contracts.meanings import expected
from tidemill.contracts.outcomes import Found, columns_of, printable
from tidemill.contracts.values import as_value, is_computed_exactly
from tidemill.core.contract.contract import Check, Contract, Expectation, TableRule
from tidemill.core.contract.schema import DataType, Decimal
from tidemill.core.contract.scope import Scope
from tidemill.core.contract.verdict import CheckResult
from tidemill.core.errors import ContractError, EngineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_FAILING_ROWS = 20
"""The most failing rows that a result shows."""


def _nowhere(rows: pa.Table, columns: Sequence[str], predicate: str) -> pa.Table:
    raise EngineError(f"nothing is given that could check {predicate} on {', '.join(columns)} of {len(rows)} rows")


def audit(
    table: str,
    rows: pa.Table | DataFrame,
    contract: Contract,
    beside: Beside | None = None,
    where: Where = _nowhere,
) -> tuple[CheckResult, ...]:
    """Check the staged rows against each table rule of the contract. The results have the order of the rules.

    A key must not be there twice in the whole table: Unique compares the staged rows with each other, and with the rows
    of `beside`. A rule with the scope TABLE counts all rows that the table keeps, too; other rules are about the staged
    rows. `beside` is None when the table keeps no row. Predicates of users on rows in memory are left to `where`.

    A Spark data frame (local or through Spark Connect) is checked in its cluster, by the same functions as rows in
    memory, and it is persisted meanwhile. A null breaks only NotNull; Unique skips rows with a null in one of its
    columns; NaN breaks every bound and every comparison. If there are no rows, every rule passes except one about the
    number of rows. Columns without a rule do not matter. Sums, means and extremes of integers and decimals are exact;
    other statistics are computed by Great Expectations.

    Raises:
        ContractError: a rule names a column that the rows do not have.
        EngineError: a rule could not be checked, so nothing is known about the rows.
    """
    if not contract.table_rules:
        return ()
    names = list(rows.schema.names if isinstance(rows, pa.Table) else rows.columns)
    _check_columns(table, names, contract)
    shown = [_shown(rule.check, contract, names) for rule in contract.table_rules]
    kept = Nothing() if beside is None else beside
    found = _found(rows, contract, shown, Around(beside=kept, where=where))
    return tuple(_result(table, rule, found[rule.name], scope_of(rule, kept)) for rule in contract.table_rules)


def _found(
    rows: pa.Table | DataFrame, contract: Contract, shown: Sequence[list[str]], around: Around
) -> dict[str, Found]:
    if isinstance(rows, pa.Table):
        found, kept = found_in_memory(rows, contract, shown, MAX_FAILING_ROWS, around)
        return found | _computed(contract, lambda scope, columns: _of_scope(rows, kept, scope, columns))
    from tidemill.contracts.audit_spark import found_on_spark, of_scope  # noqa: PLC0415

    found = found_on_spark(rows, contract, shown, MAX_FAILING_ROWS, around.beside)
    return found | _computed(contract, lambda scope, columns: of_scope(rows, around.beside, scope, columns))


def _of_scope(rows: pa.Table, kept: Kept, scope: Scope, columns: list[str]) -> pa.Table:
    return rows.select(columns) if scope is Scope.BATCH else kept.together(rows, columns)


def _computed(contract: Contract, rows: Callable[[Scope, list[str]], Any]) -> dict[str, Found]:
    """Statistics of the rows of each scope: exact ones are computed here, others by Great Expectations."""
    types = {each.name: each.type for each in contract.fields}
    found: dict[str, Found] = {}
    for scope in Scope:
        named = [
            (r.name, r.check) for r in contract.table_rules if isinstance(r.check, Expectation) and r.scope is scope
        ]
        if named:
            columns = sorted({check.column for _, check in named})
            found |= _statistics(rows(scope, columns), named, types)
    return found


def _statistics(rows: Any, named: Sequence[tuple[str, Expectation]], types: Mapping[str, DataType]) -> dict[str, Found]:
    exact = [each for each in named if is_computed_exactly(each[1].kind, types.get(each[1].column))]
    others = [(name, _of_values(check, types)) for name, check in named if (name, check) not in exact]
    computed = exact_statistics(rows, exact) if exact else {}
    computed |= _engine().computed(rows, others) if others else {}
    return {name: Found(passed=holds, observed="" if holds else seen) for name, (holds, seen) in computed.items()}


def _of_values(check: Expectation, types: Mapping[str, DataType]) -> Expectation:
    """The expectation with its set as values that the column holds: to Great Expectations 0.1 is no decimal."""
    told: dict[str, Any] = dict(check.arguments)
    listed, of = told.get("value_set"), types.get(check.column)
    if listed is None or not isinstance(of, Decimal):
        return check
    told["value_set"] = tuple(as_value(value, of) for value in listed)
    return replace(check, arguments=tuple(sorted(told.items())))


def _result(table: str, rule: TableRule, found: Found, scope: Scope) -> CheckResult:
    return CheckResult(
        table=table,
        rule=rule.name,
        severity=rule.severity,
        passed=found.passed,
        observed=found.observed,
        failing_rows=printable(found.rows),
        expected=None if found.passed else expected(rule.check, rule.tolerance),
        scope=scope,
    )


def warm_up(contract: Contract) -> None:
    """Import what an audit of this contract needs, so that the first audit does not wait for it.

    Great Expectations takes seconds of CPU. Safe to call from any thread, at any time, more than once.
    """
    types = {each.name: each.type for each in contract.fields}
    checks = [rule.check for rule in contract.table_rules if isinstance(rule.check, Expectation)]
    if any(not is_computed_exactly(check.kind, types.get(check.column)) for check in checks):
        _engine().warm_up()


def statistics_in_words(named: Sequence[tuple[str, Expectation]]) -> Mapping[str, str]:
    """What each statistic asks, by rule, in the words of Great Expectations, which takes seconds to load."""
    words: Mapping[str, str] = _engine().sentences(named) if named else {}
    return words


def _engine() -> Any:
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    from tidemill.contracts import expectation_engine  # noqa: PLC0415

    return expectation_engine


def _check_columns(table: str, names: Sequence[str], contract: Contract) -> None:
    for rule in contract.table_rules:
        missing = [c for c in columns_of(rule.check) if c not in names]
        if missing:
            raise ContractError(
                f"contract {contract.name}: rule `{rule.name}` is about the column `{missing[0]}`, but what is "
                f"staged for {table} has {', '.join(names)}",
                fix="give the pipeline this column, or remove it from the contract",
            )


def _shown(check: Check, contract: Contract, names: Sequence[str]) -> list[str]:
    """The columns to show of a failing row: the primary key (all columns if there is none) and the checked columns."""
    naming = contract.primary_key or contract.columns
    return [c for c in dict.fromkeys((*naming, *columns_of(check))) if c in names]
