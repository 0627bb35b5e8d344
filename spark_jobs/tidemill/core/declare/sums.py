"""Sums that are exact in any order, however large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tidemill.core.contract.schema import DataType, Decimal, cast_or_null
from tidemill.core.declare.triples import Aggregate, Triple
from tidemill.core.errors import DeclarationError


class Overflow(StrEnum):
    """What is published when a column cannot hold a sum.

    SATURATE: the nearest number that the column can hold. NULL: null. Either way, the audit warns.
    """

    SATURATE = "saturate"
    NULL = "null"


_IS_WHOLE = "typeof({value}) = 'bigint'"
_BITS_64 = "try_add(try_multiply({high}, 4294967296L), {low})"
_NEAREST = f"""CASE WHEN {{high}} > 2147483647L THEN 9223372036854775807L
 WHEN {{high}} < -2147483648L THEN -9223372036854775807L - 1L ELSE {_BITS_64} END"""
_EXACT = "(CAST({high} AS DECIMAL(19, 0)) * 4294967296BD + {low})"
# Older rows of state have `value` but no halves. If their sum exceeded 64 bits, it is lost.
_LOST = "{n} > 0 AND {value} IS NULL AND {high} IS NULL"
_HIGH = "coalesce({high}, shiftright(try_cast({value} AS BIGINT), 32))"
_LOW = "coalesce({low}, try_cast({value} AS BIGINT) & 4294967295L)"


@dataclass(frozen=True, slots=True)
class Sum(Aggregate):
    """The sum of the values that are not null; null when there is no value.

    Integers add exactly, however many and however large, in any order. Decimals add exactly while their sum has at most
    38 digits; a longer sum is null.

    Args:
        expression: Spark SQL over one row that gives a number.
        overflow: what is published if the sum does not fit an integer column of 64 bits, or the digits of a decimal
            column: "saturate", the nearest number that fits, or "null". The audit warns of both.

    Raises:
        DeclarationError: there is no such `overflow`.
    """

    expression: str
    overflow: str = Overflow.SATURATE

    def __post_init__(self) -> None:
        Aggregate.__post_init__(self)
        if self.overflow not in list(Overflow):
            raise DeclarationError(f"Sum: overflow is {' or '.join(Overflow)}, found {self.overflow!r}")

    @property
    def triple(self) -> Triple:  # noqa: D102
        # The two halves of each integer are summed separately, so that neither sum comes near 64 bits.
        whole = f"try_cast(({self.expression}) AS BIGINT)"
        low = f"sum({whole} & 4294967295L)"
        kept = f"CASE WHEN NOT bool_or({_LOST}) THEN"
        return Triple(
            partial={
                "value": f"try_sum({self.expression})",
                "n": f"count({self.expression})",
                "high": f"sum(shiftright({whole}, 32)) + shiftright({low}, 32)",
                "low": f"{low} & 4294967295L",
            },
            merge={
                "value": "CASE WHEN bool_or({n} > 0 AND {value} IS NULL) THEN NULL ELSE try_sum({value}) END",
                "n": "sum({n})",
                "high": f"{kept} sum({_HIGH}) + shiftright(sum({_LOW}), 32) END",
                "low": f"{kept} sum({_LOW}) & 4294967295L END",
            },
            finish=self._finish(_NEAREST if self.overflow == Overflow.SATURATE else _BITS_64),
        )

    def finish_as(self, wanted: DataType) -> str:  # noqa: D102
        if not isinstance(wanted, Decimal):
            return self.triple.finish
        above, below = (_most(wanted), f"-{_most(wanted)}") if self.overflow == Overflow.SATURATE else ("NULL", "NULL")

        def bounded(total: str, most: str) -> str:
            within = cast_or_null(total, wanted)
            return f"CASE WHEN {total} > {most} THEN {above} WHEN {total} < -{most} THEN {below} ELSE {within} END"

        return _whole_or_not(bounded, wanted)

    def overflowed(self, wanted: DataType) -> str | None:  # noqa: D102
        lost = f"({{n}} > 0 AND {{value}} IS NULL AND ({{high}} IS NULL OR NOT {_IS_WHOLE}))"
        beyond = f"({_IS_WHOLE} AND {{high}} NOT BETWEEN -2147483648L AND 2147483647L)"
        if isinstance(wanted, Decimal):
            beyond = f"({_whole_or_not(lambda total, most: f'{total} NOT BETWEEN -{most} AND {most}', wanted)})"
        return f"coalesce({beyond}, false) OR {lost}"

    @staticmethod
    def _finish(whole: str) -> str:
        return f"CASE WHEN {_IS_WHOLE} THEN {whole} ELSE {{value}} END"


def _whole_or_not(form: Callable[[str, str], str], wanted: Decimal) -> str:
    """An expression of a sum and the most that its column holds, for integers and for decimals separately.

    Both branches must have one type: Spark would cut digits off a decimal that it widens beyond 38.
    """
    whole = Decimal(wanted.precision - wanted.scale) if wanted.precision > wanted.scale else None
    most = _most(whole) if whole else "0BD"
    return f"CASE WHEN {_IS_WHOLE} THEN {form(_EXACT, most)} ELSE {form('{value}', _most(wanted))} END"


def _most(of: Decimal) -> str:
    """The largest number of this type, as a literal."""
    digits = "9" * of.precision
    point = of.precision - of.scale
    return f"{digits[:point] or '0'}.{digits[point:]}BD" if of.scale else f"{digits}BD"
