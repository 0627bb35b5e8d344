"""What the bench asks of everyone it measures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bench.workload import Workload

WINDOW = "10 seconds"
DELAY = "10 seconds"
"""How late a record may be. The traffic is out of order by less, so nobody has a late record to lose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The records of one round, which everyone reads from the same files. `index` counts from 0."""

    index: int
    records: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """Where a series of rounds takes place, and what it computes: all read `log`, `lake` is the contestant's own."""

    spark: SparkSession
    log: Path
    lake: Path
    workload: Workload


class Contestant(Protocol):
    """One way to make the tables of a workload of a round's records."""

    @property
    def name(self) -> str:
        """What the results are filed under."""
        ...

    def prepare(self, arena: Arena) -> None:
        """Make ready for the first round, once."""
        ...

    def round(self, delivery: Delivery) -> float:
        """Take all of a delivery that has just been written; the seconds it took.

        Raises:
            RuntimeError: another number of records was read than delivered.
        """
        ...

    def rows(self) -> DataFrame | None:
        """All that was published so far, with the columns of the workload, or nothing."""
        ...
