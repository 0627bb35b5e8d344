"""Which rows a rule of a table looks at."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """The rows that one BATCH publishes, or all rows of the TABLE as they are after the batch."""

    BATCH = "batch"
    TABLE = "table"

    @property
    def words(self) -> str:
        """For example "the rows of the batch"."""
        return "the rows of the batch" if self is Scope.BATCH else "the whole table"
