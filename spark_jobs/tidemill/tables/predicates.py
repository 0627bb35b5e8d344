"""Conditions on a table as SQL text, for delta-rs and for Spark.

Bounds become literals, never parameters: only literals let an engine skip files.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import assert_never

from tidemill.core.sql.text import quoted
from tidemill.tables.interface import Between, Bound

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment: datetime) -> int:
    """Microseconds since 1970 in UTC, exact; negative before 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


Parts = tuple[tuple[Between, ...], ...]


def datafusion(where: tuple[Between, ...], any_of: Parts = ()) -> str | None:
    """SQL for delta-rs: all conditions of `where`, and all conditions of one of the parts; None for no condition."""
    return _with_parts(any_of, lambda bounds: _all(bounds, '"', _datafusion_literal), where)


def spark_sql(where: tuple[Between, ...], alias: str = "", any_of: Parts = ()) -> str | None:
    """SQL for Spark: the same conditions as in `datafusion`, with columns qualified by `alias`."""
    return _with_parts(any_of, lambda b: _all(b, "`", _spark_literal, f"{alias}." if alias else ""), where)


def _with_parts(
    any_of: Parts, text: Callable[[tuple[Between, ...]], str | None], where: tuple[Between, ...]
) -> str | None:
    parts = [text(part) for part in any_of]
    ways = " OR ".join(f"({part})" for part in parts if part)
    terms = [text(where), f"({ways})" if ways and all(parts) else None]
    return " AND ".join(term for term in terms if term) or None


def _all(where: tuple[Between, ...], quote: str, literal: Callable[[Bound], str], prefix: str = "") -> str | None:
    terms = []
    for bounds in where:
        column = prefix + quoted(bounds.column, quote)
        if bounds.low is not None:
            terms.append(f"{column} >= {literal(bounds.low)}")
        if bounds.high is not None:
            terms.append(f"{column} < {literal(bounds.high)}")
    return " AND ".join(terms) or None


def _datafusion_literal(bound: Bound) -> str:
    match bound:
        case datetime():
            # A TIMESTAMP literal has nanoseconds: it ends in 2262, and cannot be compared with statistics.
            return f"arrow_cast({micros(bound)}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
        case date():
            return f"arrow_cast({(bound - _EPOCH.date()).days}, 'Date32')"
        case int():
            return str(bound)
        case _:
            assert_never(bound)


def _spark_literal(bound: Bound) -> str:
    match bound:
        case datetime():
            return f"timestamp_micros({micros(bound)})"
        case date():
            return f"DATE'{bound.isoformat()}'"
        case int():
            return f"CAST('{bound}' AS BIGINT)"
        case _:
            assert_never(bound)
