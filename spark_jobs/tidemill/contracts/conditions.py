"""What a rule can check: the checks of the core, and predicates of users, which apply only to single rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.contracts.findings import Findings
from tidemill.contracts.values import is_number_type
from tidemill.core.contract.contract import Check, Compare, Holds, Severity
from tidemill.core.contract.schema import Array, DataType, Field, Object, Scalar
from tidemill.core.contract.scope import Scope
from tidemill.core.contract.tolerance import Tolerance
from tidemill.core.sql.text import quoted

_MOMENTS = (Scalar.DATE, Scalar.TIMESTAMP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A Spark SQL predicate written by the user, over the columns of the contract."""

    sql: str


Condition = Check | Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A condition that the contract states at `line`. It is not decided yet where it will be checked."""

    line: int
    name: str
    condition: Condition
    severity: Severity = Severity.ERROR
    description: str = ""
    tolerance: Tolerance | None = None
    scope: Scope = Scope.BATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a list of rules stands: at a column, or (None) at the whole schema. `fields` are all columns by name.

    `names` are those of the schema object: its own, and that of its table in the source.
    """

    column: Field | None
    fields: Mapping[str, Field]
    is_input: bool
    findings: Findings
    names: tuple[str, ...] = ()


def comparison_of(left: str, operator: str, right: str, fields: Mapping[str, Field]) -> Compare | Holds:
    """The check that compares two columns: of types that only Spark makes one, it is a predicate for Spark."""
    types = [fields[name].type if name in fields else None for name in (left, right)]
    one, other = types
    if one is None or other is None or are_alike(one, other) or not _are_cast(one, other):
        return Compare(left=left, operator=operator, right=right)
    used = tuple(name for name in fields if name in (left, right))
    return Holds(columns=used, predicate=f"{quoted(left)} {operator} {quoted(right)}")


def are_alike(left: DataType, right: DataType) -> bool:
    """Whether values of two types are compared exactly without Spark."""
    if isinstance(left, Array | Object):
        return False
    return left == right or (_is_exact(left) and _is_exact(right))


def _are_cast(left: DataType, right: DataType) -> bool:
    """Whether Spark casts values of two types by itself to compare them, and cannot fail."""
    return (is_number_type(left) and is_number_type(right)) or (left in _MOMENTS and right in _MOMENTS)


def _is_exact(data_type: DataType) -> bool:
    return is_number_type(data_type) and data_type is not Scalar.DOUBLE
