"""What an audit found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.core.contract.contract import Severity
from tidemill.core.contract.scope import Scope
from tidemill.core.errors import AuditBlocked

Json = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The outcome of one table rule on the staged rows of one table.

    `observed` says in a few words what was found; where the rule is broken, `expected` says what should have been.
    `scope` says which rows it looked at; both are None in results of older versions. `failing_rows` are some of the
    staged rows that broke the rule (at most 20), each a mapping of column to printable value; empty for rules about
    all rows together.
    """

    table: str
    rule: str
    severity: Severity
    passed: bool
    observed: str = ""
    failing_rows: tuple[Mapping[str, Json], ...] = ()
    expected: str | None = None
    scope: Scope | None = None

    @property
    def found(self) -> str:
        """What was found, what should have been, and which rows the rule looked at; empty for a rule that holds."""
        expected = f"expected {self.expected}" if self.expected else ""
        looked = f"it looked at {self.scope.words}" if self.scope and not self.passed else ""
        return "; ".join(part for part in (self.observed, expected, looked) if part)

    def __str__(self) -> str:
        """For example "error totals: few: 12 rows; expected at most 5 rows; it looked at the rows of the batch"."""
        return f"{self.severity.value} {self.table}: {self.rule}" + (f": {self.found}" if self.found else "")


@dataclass(frozen=True, slots=True)
class Verdict:
    """All results of an audit, in the order of the contract's rules."""

    results: tuple[CheckResult, ...] = ()

    @property
    def blocks(self) -> bool:
        """Whether a rule of severity ERROR was broken: then nothing may be published."""
        return any(not r.passed and r.severity is Severity.ERROR for r in self.results)

    @property
    def broken(self) -> tuple[CheckResult, ...]:
        """The results that did not pass, errors before warnings."""
        failed = [r for r in self.results if not r.passed]
        return tuple(sorted(failed, key=lambda r: r.severity is not Severity.ERROR))


def blocked(pipeline: str, batch_id: int, verdict: Verdict) -> AuditBlocked:
    """The error for a verdict that blocks a batch: its text names rules, and up to five rows of each."""
    lines = []
    for result in verdict.broken:
        lines.append(f"  {result}")
        lines += [f"    row {dict(row)}" for row in result.failing_rows[:5]]
    return AuditBlocked(
        f"{pipeline}: batch {batch_id} is blocked by its audit; nothing was published and no offset moved\n"
        + "\n".join(lines),
        fix="correct the pipeline or the contract, then run again: the batch is planned anew; or decide: "
        f"`tidemill audit show {pipeline}`",
    )
