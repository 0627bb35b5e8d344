"""The audit of staged rows: checks every table rule of a contract before readers can see the rows."""

from __future__ import annotations

import base64
import datetime as dt
import math
import os
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.contracts.suite import columns_of
from tidemill.core.contract.contract import Check, Contract, RowCountBetween
from tidemill.core.contract.verdict import CheckResult, Json
from tidemill.core.errors import ContractError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemill.contracts.audit_engine import Outcome

MAX_FAILING_ROWS = 20
"""The most failing rows that a result shows."""


def audit(table: str, rows: pa.Table | DataFrame, contract: Contract) -> tuple[CheckResult, ...]:
    """Check the staged rows against each table rule of the contract. The results have the order of the rules.

    Rows in memory are checked with pandas. A Spark data frame (local or through Spark Connect) is checked in its
    cluster and persisted meanwhile. Both give the same results. A null breaks only NotNull; Unique skips rows with a
    null in one of its columns; NaN breaks every bound and every comparison. If there are no rows, every rule passes
    except one about the number of rows. Columns without a rule do not matter.

    Raises:
        ContractError: a rule names a column that the rows do not have.
        EngineError: a rule could not be checked, so nothing is known about the rows.
    """
    if not contract.table_rules:
        return ()
    in_memory = isinstance(rows, pa.Table)
    names = list(rows.schema.names if in_memory else rows.columns)
    _check_columns(table, names, contract)
    shown = [_shown(rule.check, contract, names) for rule in contract.table_rules]
    found = (_engine().audit_arrow if in_memory else _engine().audit_spark)(rows, contract, shown, MAX_FAILING_ROWS)
    return tuple(
        CheckResult(
            table=table,
            rule=rule.name,
            severity=rule.severity,
            passed=outcome.passed,
            observed=_observed(rule.check, outcome),
            failing_rows=_printable(failing),
        )
        for rule, (outcome, failing) in zip(contract.table_rules, found, strict=True)
    )


def warm_up() -> None:
    """Import Great Expectations, which takes seconds of CPU, so that the first audit does not wait for it.

    Safe to call from any thread, at any time, more than once.
    """
    _engine().warm_up()


def _engine() -> ModuleType:
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    from tidemill.contracts import audit_engine  # noqa: PLC0415

    return audit_engine


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


def _observed(check: Check, outcome: Outcome) -> str:
    if isinstance(check, RowCountBetween):
        return "" if outcome.rows is None else f"{outcome.rows} rows"
    return "" if outcome.passed else f"{outcome.bad} of {outcome.rows} rows"


def _printable(rows: pa.Table | None) -> tuple[Mapping[str, Json], ...]:
    if rows is None:
        return ()
    return tuple({name: _json(value) for name, value in row.items()} for row in rows.to_pylist())


def _json(value: Any) -> Json:
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case dt.datetime():
            return (value.astimezone(dt.UTC) if value.tzinfo else value).isoformat().replace("+00:00", "Z")
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return str(value)
