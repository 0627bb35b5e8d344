"""Further checks of one row: dates, multiples, refused values, arrays and what objects must have inside."""

from __future__ import annotations

from dataclasses import dataclass

Plain = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """A date or time compared with an ISO 8601 bound; `operator` is one of `>`, `>=`, `<`, `<=`."""

    column: str
    operator: str
    bound: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipleOf:
    """Every number is a multiple of `factor`; nulls pass."""

    column: str
    factor: int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoneOf:
    """No value is one of `values`; with `null_too`, no value is null either."""

    column: str
    values: tuple[Plain, ...]
    null_too: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsBetween:
    """Every array has at least `minimum` and at most `maximum` items; None means no limit."""

    column: str
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsDistinct:
    """No array contains an item twice."""

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotNullInside:
    """No value at `path` inside the column is null, wherever the object around it is there.

    A step of the path is the name of a field; `ITEMS` goes into the items of an array.
    """

    column: str
    path: tuple[str, ...]


ITEMS = "[]"
"""The step of a path into the items of an array."""

RowCheck = Bounded | MultipleOf | NoneOf | ItemsBetween | ItemsDistinct | NotNullInside
