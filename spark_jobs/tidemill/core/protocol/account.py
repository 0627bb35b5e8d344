"""The conservation law: every record read ends in exactly one place."""

from __future__ import annotations

from dataclasses import dataclass, fields

from tidemill.core.errors import EngineError, Unbalanced


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Counts of records of one input, or the sum over several inputs.

    Each record counts once. It is `rejected` when it broke the contract, and `shed` when a declared budget dropped it.
    Else it is `aggregated` when it entered at least one window or row sink, else `late` when a window refused it, else
    `filtered`: no sink wanted it.
    """

    read: int = 0
    aggregated: int = 0
    filtered: int = 0
    rejected: int = 0
    late: int = 0
    shed: int = 0

    def __post_init__(self) -> None:
        if any(getattr(self, f.name) < 0 for f in fields(self)):
            raise ValueError(f"a negative count: {self}")

    def __add__(self, other: Account) -> Account:
        return Account(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    @property
    def placed(self) -> int:
        """The number of records that ended in one of the places."""
        return self.aggregated + self.filtered + self.rejected + self.late + self.shed

    @property
    def balances(self) -> bool:
        """Whether `read = aggregated + filtered + rejected + late + shed`."""
        return self.read == self.placed

    def check(self, *, expected_read: int, at_most: bool = False, where: str) -> None:
        """Check that no record was lost or counted twice.

        Args:
            expected_read: how many offsets the plan holds.
            at_most: fewer records may be read than that, because the log may have gaps.
            where: what to call this account in the error: pipeline, batch and input.

        Raises:
            Unbalanced: the counts do not add up; the batch must not commit.
        """
        if not self.balances:
            raise Unbalanced(f"{where}: read {self.read:,} records but placed {self.placed:,}: {self}")
        if self.read > expected_read or (self.read < expected_read and not at_most):
            raise Unbalanced(
                f"{where}: the plan holds {expected_read:,} records but {self.read:,} were read",
                fix="check the log for missing or damaged segments; nothing was committed",
            )

    def __str__(self) -> str:
        return " ".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))


def went_away(where: str, *, expected: int, found: int) -> EngineError:
    """The error for rows that Spark did not find again.

    Spark takes a file that is away at the moment when it lists it for a file that never was.
    """
    return EngineError(
        f"{where}: files went away while the batch read them: expected {expected:,} rows, found {found:,}",
        fix="run it again: what the log has lost is named then, and nothing moves",
    )
