"""What a rule can check: the checks of the core, and predicates of users, which apply only to single rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.contracts.findings import Findings
from tidemill.core.contract.contract import Check, Severity
from tidemill.core.contract.schema import Field
from tidemill.core.contract.scope import Scope
from tidemill.core.contract.tolerance import Tolerance


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
