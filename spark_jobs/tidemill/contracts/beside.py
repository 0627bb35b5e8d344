"""What an audit asks about the rows that a table keeps when a batch publishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.contract.contract import TableRule, Unique
from tidemill.core.contract.scope import Scope

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Where: TypeAlias = "Callable[[pa.Table, Sequence[str], str], pa.Table]"
"""Gives columns of the rows of an Arrow table for which a predicate in Spark SQL is true."""


class Beside(Protocol):
    """The rows that a table keeps beside the staged ones. They are of the kind of these: Arrow, or data frames."""

    @property
    def is_of_rows(self) -> bool:
        """Whether the table has single rows, whose keys are about all of it; a table of windows has not."""

    def rows(self, columns: Sequence[str]) -> pa.Table | DataFrame | None:
        """At least those kept rows that agree with a staged one in these columns; None is no row."""

    def kept(self, columns: Sequence[str]) -> Iterator[pa.Table | DataFrame]:
        """All kept rows, with these columns, in parts of which one is in memory at a time."""


class Nothing:
    """The table keeps no row: it is new, or only these rows are looked at."""

    is_of_rows = True

    def rows(self, columns: Sequence[str]) -> None:
        """No row."""

    def kept(self, columns: Sequence[str]) -> Iterator[pa.Table | DataFrame]:
        """No part."""
        return iter(())


def scope_of(rule: TableRule, beside: Beside) -> Scope:
    """Which rows a rule looks at: a key of single rows is about the whole table, whatever the rule says."""
    return Scope.TABLE if isinstance(rule.check, Unique) and beside.is_of_rows else rule.scope
