"""What a rule can check: the checks of the core, and conditions that apply only to single rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.contracts.findings import Findings
from tidemill.core.contract.contract import Check, Severity
from tidemill.core.contract.schema import Field

Plain = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A Spark SQL predicate written by the user, over the columns of the contract."""

    sql: str


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


Condition = Check | Predicate | Bounded | MultipleOf | NoneOf | ItemsBetween | ItemsDistinct


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A condition that the contract states at `line`. It is not decided yet where it will be checked."""

    line: int
    name: str
    condition: Condition
    severity: Severity = Severity.ERROR
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a list of rules stands: at a column, or (None) at the whole schema. `fields` are all columns by name."""

    column: Field | None
    fields: Mapping[str, Field]
    is_input: bool
    findings: Findings
