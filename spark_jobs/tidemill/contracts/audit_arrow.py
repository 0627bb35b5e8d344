"""The audit of rows in memory."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.contracts.masks import broken, repeated
from tidemill.contracts.outcomes import Found, named, of_count, of_rows
from tidemill.core.contract.contract import Check, Contract, Expectation, RowCountBetween, Unique
from tidemill.core.contract.schema import DataType


def found_in_memory(rows: pa.Table, contract: Contract, shown: Sequence[list[str]], limit: int) -> dict[str, Found]:
    """Check each rule but expectations; `shown` are the columns to show for each rule, of at most `limit` rows."""
    types = {field.name: field.type for field in contract.fields}
    rows = rows.combine_chunks()
    found = {}
    for rule, columns in zip(contract.table_rules, shown, strict=True):
        if not isinstance(rule.check, Expectation):
            with named(rule.name):
                found[rule.name] = _checked(rule.check, rows, types, columns, limit)
    return found


def _checked(check: Check, rows: pa.Table, types: dict[str, DataType], columns: list[str], limit: int) -> Found:
    if isinstance(check, RowCountBetween):
        return of_count(check, len(rows))
    if isinstance(check, Unique):
        places = repeated(check.columns, rows)
        bad = len(places)
    else:
        mask = broken(check, rows, types)
        bad = pc.sum(mask).as_py() or 0
        places = pc.indices_nonzero(mask) if bad else None
    return of_rows(bad, len(rows), rows.select(columns).take(places[:limit]) if bad else None)
