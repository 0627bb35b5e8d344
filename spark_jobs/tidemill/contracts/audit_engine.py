"""Great Expectations, as the audit uses it.

Importing this module takes seconds of CPU: `tidemill.contracts.audit` does so inside functions only.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import great_expectations as gx
from great_expectations.core.expectation_suite import ExpectationSuite
from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween

from tidemill.contracts.suite import Engine, expectation
from tidemill.core.contract import TableRule
from tidemill.core.errors import EngineError
from tidemill.core.schema import DataType

Columns = tuple[tuple[str, DataType], ...]
"""The names and types of a table's columns."""

_LOCK = threading.Lock()


class ExpectColumnValuesToBeBetweenExactly(ExpectColumnValuesToBeBetween):
    """See `tidemill.contracts.suite.EXACTLY_BETWEEN`; defining the class registers the expectation."""

    min_value: Any = None
    max_value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What Great Expectations says of one rule.

    `bad` and `rows` are counts, known only where details were asked for; so are `positions`, the places of some bad
    rows from 0, and these only for pandas.
    """

    passed: bool
    bad: int | None = None
    rows: int | None = None
    positions: tuple[int, ...] = ()


def validate(
    frame: Any, rules: Sequence[TableRule], columns: Columns, engine: Engine, *, details: int = 0
) -> Mapping[str, Outcome]:
    """The outcome of each rule on a pandas or Spark data frame, by the rule's name.

    With `details` above 0, counts and up to that many positions are gathered too, which takes longer.

    Raises:
        EngineError: an expectation could not be computed, or there is not exactly one answer for each rule.
    """
    batch = batch_definition(engine).get_batch({"dataframe": frame})
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
    """An expectation that could not be computed looks like one that was broken, but for this."""
    for item in [info] if "raised_exception" in info else info.values():
        if item["raised_exception"]:
            raise EngineError(f"rule `{rule}` could not be checked: {item['exception_message']}")


@lru_cache(maxsize=128)
def _suite(rules: tuple[TableRule, ...], columns: Columns, engine: Engine) -> ExpectationSuite:
    types = dict(columns)
    return ExpectationSuite(name="tidemill", expectations=[expectation(rule, types, engine) for rule in rules])


def batch_definition(engine: Engine) -> Any:
    """Where data frames are handed over; made once, also when several threads ask."""
    with _LOCK:
        return _batch_definition(engine)


@cache
def _batch_definition(engine: Engine) -> Any:
    sources = _context().data_sources
    source = sources.add_pandas("pandas") if engine is Engine.PANDAS else sources.add_spark("spark")
    return source.add_dataframe_asset("staged").add_batch_definition_whole_dataframe("all")


@cache
def _context() -> Any:
    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    return context
