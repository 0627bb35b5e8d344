"""Casts values to the types of a contract and reports those that do not fit: none becomes null unnoticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.contract.contract import Contract, Severity
from tidemill.core.contract.schema import Field, cast_or_null, spark_type
from tidemill.core.contract.verdict import CheckResult
from tidemill.core.sql.text import quoted, renamed, text_literal
from tidemill.engine.storage.staged_rows import StagedRows

UNFIT = "_unfit"
"""A column with the rules that values of a row break, separated by commas; null when every value fits."""

BEYOND = "_beyond_"
"""The prefix of columns that say whether an aggregate exceeds what its column can hold."""

_FITS, _OVERFLOW = "fits", "overflow"
_SHOWN = 5


def fitted(fields: Iterable[Field], beyond: Iterable[str] = ()) -> list[str]:
    """SQL columns: these fields, cast to their types, and `UNFIT`.

    `beyond` names the fields for which there is a column with the prefix `BEYOND`.
    """
    casts = {f.name: cast_or_null(quoted(f.name), f.type) for f in fields}
    lost = [_told(f"{quoted(c)} IS NOT NULL AND {cast} IS NULL", c, _FITS) for c, cast in casts.items()]
    over = [_told(quoted(BEYOND + c), c, _OVERFLOW) for c in beyond]
    unfit = f"nullif(concat_ws(',', {', '.join([*lost, *over])}), '')"
    return [*(renamed(cast, c) for c, cast in casts.items()), renamed(unfit, UNFIT)]


def _told(condition: str, column: str, rule: str) -> str:
    return f"CASE WHEN {condition} THEN {text_literal(f'{column}.{rule}')} END"


def told(staged: StagedRows, table: str, contract: Contract) -> tuple[StagedRows, tuple[CheckResult, ...]]:
    """The rows without `UNFIT`, and a broken rule for each column with values that do not fit.

    A lost value is an error. A sum that exceeds its column is a warning, because the declaration says what is
    published.
    """
    if isinstance(staged.rows, pa.Table):
        column, rest = staged.rows[UNFIT], staged.rows.drop_columns([UNFIT])
        texts = Counter(column.drop_null().to_pylist()) if column.null_count < len(column) else Counter()
        unfit = staged.rows.filter(column.is_valid()) if texts else None
    else:
        rest = staged.rows.drop(UNFIT)
        found = staged.rows.where(f"{UNFIT} IS NOT NULL").groupBy(UNFIT).count().toArrow().to_pylist()
        texts = Counter({row[UNFIT]: row["count"] for row in found})
        unfit = staged.rows.where(f"{UNFIT} IS NOT NULL").limit(_SHOWN).toArrow() if texts else None
    results = _results(texts, staged.count, table, contract, unfit)
    return StagedRows(staged.writer, rest, staged.count), tuple(results)


def _results(
    texts: Mapping[str, int], count: int, table: str, contract: Contract, unfit: pa.Table | None
) -> Iterable[CheckResult]:
    rules: Counter[str] = Counter()
    for text, times in texts.items():
        rules.update(dict.fromkeys(text.split(","), times))
    types = {f.name: spark_type(f.type) for f in contract.fields}
    for rule, times in sorted(rules.items()):
        column, _, kind = rule.rpartition(".")
        beyond = "bitmaps without a bit for a number" if types[column] == "binary" else f"sums beyond {types[column]}"
        what = f"values that do not fit {types[column]}" if kind == _FITS else beyond
        yield CheckResult(
            table=table,
            rule=rule,
            severity=Severity.ERROR if kind == _FITS else Severity.WARNING,
            passed=False,
            observed=f"{times} of {count} rows: {what}",
            failing_rows=_shown(unfit, rule, contract),
        )


def _shown(unfit: pa.Table | None, rule: str, contract: Contract) -> tuple[Mapping[str, Any], ...]:
    """Some of the failing rows, with the columns that identify them."""
    there = frozenset(() if unfit is None else unfit.column_names)
    names = [n for n in contract.primary_key or contract.columns if n in there]
    rows = [] if unfit is None else [r for r in unfit.to_pylist() if rule in r[UNFIT].split(",")]
    return tuple({n: None if row[n] is None else str(row[n]) for n in names} for row in rows[:_SHOWN])
