"""The part of the audit that calls Great Expectations.

Importing this module takes seconds of CPU, so `tidemill.contracts.audit` imports it only inside functions.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import great_expectations as gx
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
from great_expectations.core.expectation_suite import ExpectationSuite
from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween

from tidemill.contracts.predicates import sql_of
from tidemill.contracts.suite import Engine, columns_of, compared_columns, expectation, nan_safe
from tidemill.core.contract.contract import Check, Compare, Contract, RowCountBetween, TableRule, Unique
from tidemill.core.contract.schema import DataType
from tidemill.core.errors import EngineError
from tidemill.core.sql.text import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Found = tuple["Outcome", pa.Table | None]
"""An outcome and some of the failing rows."""

Columns = tuple[tuple[str, DataType], ...]
"""The names and types of a table's columns."""

_LOCK = threading.Lock()


class ExpectColumnValuesToBeBetweenExactly(ExpectColumnValuesToBeBetween):
    """The expectation that `tidemill.contracts.suite.EXACTLY_BETWEEN` names. Defining the class registers it."""

    min_value: Any = None
    max_value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What Great Expectations found for one rule.

    `bad` and `rows` are counts, and `positions` are indexes of some failing rows, from 0. They are known only if
    details were asked for; `positions` only with pandas.
    """

    passed: bool
    bad: int | None = None
    rows: int | None = None
    positions: tuple[int, ...] = ()


def warm_up() -> None:
    """Create what every audit in memory needs. Importing this module takes most of the time."""
    _batch_definition(Engine.PANDAS)


def audit_arrow(rows: pa.Table, contract: Contract, shown: Sequence[list[str]], limit: int) -> list[Found]:
    """Check each rule on rows in memory. An outcome comes with at most `limit` failing rows, of which only `shown`."""
    rules, columns = contract.table_rules, _columns(contract)
    used = sorted({c for rule in rules for c in columns_of(rule.check)})
    # Arrow-backed columns keep 64-bit integers exact beside nulls, and keep NaN apart from null.
    frame = rows.select(used).to_pandas(types_mapper=pd.ArrowDtype) if used else pd.DataFrame(index=range(len(rows)))
    outcomes = dict(validate(frame, rules, columns, Engine.PANDAS))
    broken = [rule for rule in rules if not outcomes[rule.name].passed]
    if broken:
        outcomes |= validate(frame, broken, columns, Engine.PANDAS, details=limit)
    found = [outcomes[rule.name] for rule in rules]
    return [
        (outcome, rows.select(names).take(list(outcome.positions)) if outcome.positions else None)
        for outcome, names in zip(found, shown, strict=True)
    ]


def audit_spark(rows: DataFrame, contract: Contract, shown: Sequence[list[str]], limit: int) -> list[Found]:
    """Check each rule on a Spark data frame, which is computed once and persisted until the call ends."""
    rules, columns = contract.table_rules, _columns(contract)
    kept = _projected(rows, rules, dict(columns), shown).persist()
    try:
        outcomes = validate(kept, rules, columns, Engine.SPARK)
        if all(outcome.passed for outcome in outcomes.values()):
            return [(outcomes[rule.name], None) for rule in rules]
        count = kept.count()
        return [
            (outcomes[rule.name], None)
            if outcomes[rule.name].passed
            else _broken_on_spark(_bad_rows(kept, rule.check, dict(columns)), count, names, limit)
            for rule, names in zip(rules, shown, strict=True)
        ]
    finally:
        kept.unpersist()


def _columns(contract: Contract) -> Columns:
    return tuple((field.name, field.type) for field in contract.fields)


def _projected(
    rows: DataFrame, rules: Sequence[TableRule], types: Mapping[str, DataType], shown: Sequence[list[str]]
) -> DataFrame:
    """Select the columns that the rules check or show, and the columns that replace doubles in comparisons."""
    used = {c for rule in rules for c in columns_of(rule.check)} | {c for names in shown for c in names}
    safe: dict[str, str] = {}
    for check in (rule.check for rule in rules):
        if isinstance(check, Compare):
            names = compared_columns(check, types, Engine.SPARK)
            safe |= {n: s for n, s in zip(names, nan_safe(check), strict=True) if n not in types}
    return rows.selectExpr(*(quoted(c) for c in sorted(used)), *(f"{s} AS {quoted(n)}" for n, s in safe.items()))


def _bad_rows(kept: DataFrame, check: Check, types: Mapping[str, DataType]) -> DataFrame | None:
    match check:
        case RowCountBetween():
            return None
        case Unique(columns=columns):
            key = ", ".join(quoted(c) for c in columns)
            whole = kept.filter(" AND ".join(f"{quoted(c)} IS NOT NULL" for c in columns))
            alike = whole.selectExpr("*", f"count(1) OVER (PARTITION BY {key}) AS `rows alike`")
            return alike.filter("`rows alike` > 1")
        case _:
            return kept.filter(f"NOT coalesce(({sql_of(check, types)}), true)")


def _broken_on_spark(bad: DataFrame | None, count: int, shown: list[str], limit: int) -> Found:
    """Find the details of a broken rule with Spark itself: Great Expectations would take seconds for each rule."""
    if bad is None:
        return Outcome(passed=False, rows=count), None
    failing = bad.selectExpr(*(quoted(c) for c in shown)).limit(limit).toArrow()
    return Outcome(passed=False, bad=bad.count(), rows=count), failing


def validate(
    frame: Any, rules: Sequence[TableRule], columns: Columns, engine: Engine, *, details: int = 0
) -> Mapping[str, Outcome]:
    """Check each rule on a pandas or Spark data frame. Returns outcomes by the names of the rules.

    With `details` above 0, counts and up to that many positions are collected too, which takes longer.

    Raises:
        EngineError: an expectation could not be computed, or there is not exactly one result for each rule.
    """
    batch = _batch_definition(engine).get_batch({"dataframe": frame})
    wanted: Any = {"result_format": "SUMMARY", "partial_unexpected_count": details} if details else "BOOLEAN_ONLY"
    results = batch.validate(_suite(tuple(rules), columns, engine), result_format=wanted).results
    outcomes: dict[str, Outcome] = {}
    for result in results:
        meta = (result.expectation_config.meta if result.expectation_config else None) or {}
        outcomes[meta.get("rule", "")] = _outcome(meta.get("rule", ""), result)
    missing = [rule.name for rule in rules if rule.name not in outcomes]
    if missing or len(results) != len(rules):
        raise EngineError(
            f"Great Expectations answered {len(results)} of {len(rules)} rules; without answer: {', '.join(missing)}",
            fix="this version of great_expectations does not know an expectation: install the locked one",
        )
    return outcomes


def _outcome(rule: str, result: Any) -> Outcome:
    if not result.success:
        _raise_exception(rule, result.exception_info or {})
    details = result.result or {}
    return Outcome(
        passed=bool(result.success),
        bad=details.get("unexpected_count"),
        rows=details.get("element_count", details.get("observed_value")),
        positions=tuple(p for p in details.get("partial_unexpected_index_list") or () if isinstance(p, int)),
    )


def _raise_exception(rule: str, info: Mapping[str, Any]) -> None:
    """Raise if an expectation could not be computed: its result looks like a broken rule except for this entry."""
    for item in [info] if "raised_exception" in info else info.values():
        if item["raised_exception"]:
            raise EngineError(f"rule `{rule}` could not be checked: {item['exception_message']}")


@lru_cache(maxsize=128)
def _suite(rules: tuple[TableRule, ...], columns: Columns, engine: Engine) -> ExpectationSuite:
    types = dict(columns)
    return ExpectationSuite(name="tidemill", expectations=[expectation(rule, types, engine) for rule in rules])


def _batch_definition(engine: Engine) -> Any:
    """Return the object that data frames are passed to. It is created once, even if several threads ask for it."""
    with _LOCK:
        return _made_batch_definition(engine)


@cache
def _made_batch_definition(engine: Engine) -> Any:
    sources = _context().data_sources
    source = sources.add_pandas("pandas") if engine is Engine.PANDAS else sources.add_spark("spark", persist=False)
    return source.add_dataframe_asset("staged").add_batch_definition_whole_dataframe("all")


@cache
def _context() -> Any:
    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    return context
