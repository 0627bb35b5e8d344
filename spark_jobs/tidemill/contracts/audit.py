"""The audit of staged rows: checks every table rule of a contract before readers can see the rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.contracts.audit_arrow import Around, found_in_memory
from tidemill.contracts.outcomes import Found, columns_of, printable
from tidemill.core.contract.contract import Check, Contract, Expectation, TableRule
from tidemill.core.contract.verdict import CheckResult
from tidemill.core.errors import ContractError, EngineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Beside: TypeAlias = "Callable[[Sequence[str]], pa.Table | DataFrame | None]"
"""Gives the rows that a table keeps beside the staged ones: at least those that agree with one in these columns.

They are of the kind of the staged rows, an Arrow table or a data frame; None is no row.
"""

Where: TypeAlias = "Callable[[pa.Table, Sequence[str], str], pa.Table]"
"""Gives columns of the rows of an Arrow table for which a predicate in Spark SQL is true."""

MAX_FAILING_ROWS = 20
"""The most failing rows that a result shows."""


def _nowhere(rows: pa.Table, columns: Sequence[str], predicate: str) -> pa.Table:
    raise EngineError(f"nothing is given that could check {predicate} on {', '.join(columns)} of {len(rows)} rows")


def audit(
    table: str,
    rows: pa.Table | DataFrame,
    contract: Contract,
    beside: Beside = lambda _: None,
    where: Where = _nowhere,
) -> tuple[CheckResult, ...]:
    """Check the staged rows against each table rule of the contract. The results have the order of the rules.

    A key must not be there twice in the whole table: Unique compares the staged rows with each other, and with the rows
    of `beside`. All other rules are about the staged rows. Predicates of users on rows in memory are left to `where`.

    A Spark data frame (local or through Spark Connect) is checked in its cluster, by the same functions as rows in
    memory, and it is persisted meanwhile. A null breaks only NotNull; Unique skips rows with a null in one of its
    columns; NaN breaks every bound and every comparison. If there are no rows, every rule passes except one about the
    number of rows. Columns without a rule do not matter. Statistics are computed by Great Expectations.

    Raises:
        ContractError: a rule names a column that the rows do not have.
        EngineError: a rule could not be checked, so nothing is known about the rows.
    """
    if not contract.table_rules:
        return ()
    names = list(rows.schema.names if isinstance(rows, pa.Table) else rows.columns)
    _check_columns(table, names, contract)
    shown = [_shown(rule.check, contract, names) for rule in contract.table_rules]
    found = _found(rows, contract, shown, Around(beside=beside, where=where))
    return tuple(_result(table, rule, found[rule.name]) for rule in contract.table_rules)


def _found(
    rows: pa.Table | DataFrame, contract: Contract, shown: Sequence[list[str]], around: Around
) -> dict[str, Found]:
    if isinstance(rows, pa.Table):
        found = found_in_memory(rows, contract, shown, MAX_FAILING_ROWS, around)
    else:
        from tidemill.contracts.audit_spark import found_on_spark  # noqa: PLC0415

        found = found_on_spark(rows, contract, shown, MAX_FAILING_ROWS, around.beside)
    return found | _computed(rows, contract)


def _computed(rows: pa.Table | DataFrame, contract: Contract) -> dict[str, Found]:
    named = [(rule.name, rule.check) for rule in contract.table_rules if isinstance(rule.check, Expectation)]
    if not named:
        return {}
    columns = sorted({check.column for _, check in named})
    computed = _engine().computed(rows.select(columns), named)
    return {rule: Found(passed=holds, observed="" if holds else seen) for rule, (holds, seen) in computed.items()}


def _result(table: str, rule: TableRule, found: Found) -> CheckResult:
    return CheckResult(
        table=table,
        rule=rule.name,
        severity=rule.severity,
        passed=found.passed,
        observed=found.observed,
        failing_rows=printable(found.rows),
    )


def warm_up(contract: Contract) -> None:
    """Import what an audit of this contract needs, so that the first audit does not wait for it.

    Great Expectations takes seconds of CPU. Safe to call from any thread, at any time, more than once.
    """
    if any(isinstance(rule.check, Expectation) for rule in contract.table_rules):
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
