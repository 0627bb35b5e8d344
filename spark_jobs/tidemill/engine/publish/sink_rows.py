"""Rows on their way to one published table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.sinks import Sink
from tidemill.engine.storage.staged_rows import StagedRows


@dataclass(frozen=True, slots=True)
class SinkRows:
    """The rows that a sink is to publish; readers do not see them yet.

    `gone` are published sessions to remove, by key and start: they merged with others, or go on. `keys` are those of
    which a repair publishes all rows again, from some batch on.
    """

    sink: Sink
    staged: StagedRows
    gone: StagedRows | None = None
    keys: pa.Table | None = None

    @property
    def rows(self) -> Any:
        """An Arrow table, or a DataFrame if Spark writes the rows."""
        return self.staged.rows

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.staged.count
