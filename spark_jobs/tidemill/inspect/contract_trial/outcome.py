"""What came out for each promise of a contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemill.core.contract.contract import Severity
from tidemill.core.counts import many

SHOWN = 5
"""The most samples of one promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A record or row that broke a promise; `number` counts from 1, and is 0 where rows have no order."""

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One promise: its rule, the line of the contract that makes it, and what was found where it is broken.

    `expected` says what should have been found, `looks_at` which rows the rule looks at, and `fix` what to do.
    `is_rule` is false where it is about records that cannot be read, or columns that are not there: no rule says so.
    """

    rule: str
    severity: Severity
    line: int
    observed: str = ""
    expected: str = ""
    looks_at: str = ""
    fix: str = ""
    samples: tuple[Sample, ...] = ()
    is_rule: bool = True

    @property
    def told(self) -> str:
        """What was found, and what should have been."""
        return "; ".join([self.observed, *([f"expected {self.expected}"] if self.expected else [])])

    @property
    def holds(self) -> bool:
        """Whether nothing broke it."""
        return not self.observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """All promises of a contract, and how many records or rows (`noun`) were looked at."""

    contract: str
    file: str
    noun: str
    count: int
    outcomes: tuple[Outcome, ...]

    @property
    def rules(self) -> Sequence[Outcome]:
        """The promises that the contract makes as rules."""
        return [outcome for outcome in self.outcomes if outcome.is_rule]

    @property
    def broken(self) -> Sequence[Outcome]:
        """The promises that do not hold."""
        return [outcome for outcome in self.outcomes if not outcome.holds]


def observed(bad: int, count: int, noun: str) -> str:
    """For example "3 of 10 records"; empty if nothing is bad."""
    return f"{bad:,} of {many(count, noun)}" if bad else ""


def fix_of(line: int) -> str:
    """What to do about values that break the rule of this line."""
    return f"correct what writes these values, or what the rule in line {line} of the contract asks"
