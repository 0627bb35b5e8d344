"""Sums, means and extremes of integers and decimals, computed and compared without a rounding.

Great Expectations computes them in doubles, and its sums of integers overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal as Exact
from fractions import Fraction
from functools import partial
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.contracts.outcomes import named
from tidemill.contracts.units import CONTEXT
from tidemill.contracts.values import EXACT
from tidemill.core.contract.contract import Expectation
from tidemill.core.contract.long_number import fraction_of

_KINDS: Mapping[str, str] = {kind: kind.split("_")[2] for kind in EXACT}

_DIGITS = 50
_PARTS = "`column` string, `count` bigint, `sum` string, `min` string, `max` string"


@dataclass(frozen=True, slots=True)
class _Part:
    """What some rows add: the count of their values without nulls, their sum, the least and the greatest."""

    count: int = 0
    sum: Exact = Exact(0)
    min: Exact | None = None
    max: Exact | None = None

    def plus(self, other: _Part) -> _Part:
        least, most = ([n for n in pair if n is not None] for pair in ((self.min, other.min), (self.max, other.max)))
        return _Part(
            self.count + other.count,
            CONTEXT.add(self.sum, other.sum),
            min(least, default=None),
            max(most, default=None),
        )

    def value(self, name: str) -> Fraction | None:
        """The statistic; None if there is none without values."""
        if name == "sum":
            return Fraction(self.sum)
        if not self.count:
            return None
        found = {"min": self.min, "max": self.max}.get(name)
        return Fraction(self.sum) / self.count if found is None else Fraction(found)


def exact_statistics(rows: Any, checks: Sequence[tuple[str, Expectation]]) -> dict[str, tuple[bool, str]]:
    """Whether each statistic is within its bounds, and what was observed, by rule.

    `rows` are an Arrow table, or a Spark data frame, whose workers add up their rows.

    Raises:
        EngineError: a column has another type than the contract says.
    """
    columns = sorted({check.column for _, check in checks})
    with named(checks[0][0]):
        found = {column: _Part() for column in columns}
        for column, part in _in_memory(rows, columns) if isinstance(rows, pa.Table) else _on_spark(rows, columns):
            found[column] = found[column].plus(part)
    return {rule: _compared(check, found[check.column].value(_KINDS[check.kind])) for rule, check in checks}


def _in_memory(rows: pa.Table | pa.RecordBatch, columns: Iterable[str]) -> Iterator[tuple[str, _Part]]:
    for column in columns:
        yield column, _part(rows.column(column))


def _part(values: Any) -> _Part:
    scale = values.type.scale if pa.types.is_decimal(values.type) else 0
    if pa.types.is_integer(values.type):
        values = values.cast(pa.decimal128(19, 0))
    elif not pa.types.is_decimal(values.type):
        raise TypeError(f"expected integers or decimals, found {values.type}")
    # 76 digits hold the sum of as many values of 38 digits as there can be.
    total = pc.sum(values.cast(pa.decimal256(76, scale))).as_py()
    ends = pc.min_max(values).as_py()
    return _Part(len(values) - values.null_count, Exact(0) if total is None else total, ends["min"], ends["max"])


def _on_spark(rows: Any, columns: Sequence[str]) -> Iterator[tuple[str, _Part]]:
    for row in rows.mapInArrow(partial(_added, columns), _PARTS).toArrow().to_pylist():
        total, low, high = (None if row[name] is None else Exact(row[name]) for name in ("sum", "min", "max"))
        yield row["column"], _Part(row["count"], total or Exact(0), low, high)


def _added(columns: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = {column: _Part() for column in columns}
    for batch in batches:
        for column, part in _in_memory(batch, columns):
            found[column] = found[column].plus(part)
    texts = [
        {"column": column, "count": part.count}
        | {name: None if (n := getattr(part, name)) is None else str(n) for name in ("sum", "min", "max")}
        for column, part in found.items()
    ]
    kinds = [
        (name, pa.int64() if name == "count" else pa.string()) for name in ("column", "count", "sum", "min", "max")
    ]
    yield pa.RecordBatch.from_pylist(texts, pa.schema(kinds))


def _compared(check: Expectation, value: Fraction | None) -> tuple[bool, str]:
    if value is None:
        return False, "observed None"
    told: dict[str, Any] = dict(check.arguments)
    low, high = (None if (n := told.get(f"{side}_value")) is None else fraction_of(n) for side in ("min", "max"))
    above = low is None or (value > low if told.get("strict_min") else value >= low)
    below = high is None or (value < high if told.get("strict_max") else value <= high)
    return above and below, f"observed {_shown(value)}"


def _shown(value: Fraction) -> str:
    """The number; a mean without an end has 50 digits."""
    if value.denominator == 1:
        return str(value.numerator)
    rounding = CONTEXT.copy()
    rounding.prec = max(_DIGITS, len(str(value.numerator)))
    return f"{rounding.divide(Exact(value.numerator), Exact(value.denominator)).normalize(rounding):f}"
