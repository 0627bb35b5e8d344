"""What a rule can ask: the checks of the core, and what can only be asked of single rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.contracts.findings import Findings
from tidemill.core.contract.contract import Check, Severity
from tidemill.core.contract.schema import Field

Plain = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """The user's own Spark SQL predicate over the columns of the contract."""

    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """A date or time compared with a bound in ISO 8601; `operator` is one of `>`, `>=`, `<`, `<=`."""

    column: str
    operator: str
    bound: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipleOf:
    """Numbers are `factor` times a whole number; nulls pass."""

    column: str
    factor: int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoneOf:
    """Values are none of these, and where `null_too`, not null."""

    column: str
    values: tuple[Plain, ...]
    null_too: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsBetween:
    """Arrays have at least `minimum` and at most `maximum` items; None does not bound."""

    column: str
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsDistinct:
    """No item of an array stands in it twice."""

    column: str


Condition = Check | Predicate | Bounded | MultipleOf | NoneOf | ItemsBetween | ItemsDistinct


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A condition as a contract states it in `line`, before it is known where it will be checked."""

    line: int
    name: str
    condition: Condition
    severity: Severity = Severity.ERROR
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a list of rules stands: at a column, or (None) at the whole; and all columns by name."""

    column: Field | None
    fields: Mapping[str, Field]
    is_input: bool
    findings: Findings
