"""The columns of a table of firings that say which firing a row is, and those that only its state has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.core.contract.schema import Scalar

OWN_COLUMNS = frozenset(
    {
        *("piece_id", "key_as_of", "key_watermark", "key_clock", "key_used", "key_since", "key_last", "key_state"),
        *("_row", "_piece", "_told", "_value", "_marker", "_kept"),
        *("_firing", "_start", "_end", "_timing", "_index", "_last", "_operation"),
    }
)
"""Columns of rows while they are folded, and of state. What windows need of the rows must have other names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringColumns:
    """The columns that say of a row which firing it is; those that are None are not published.

    `timing` is EARLY, ON_TIME or LATE, `index` counts the firings of a window from 0, `last` says that no other follows
    and `operation` is "insert", or "delete" for a row that takes an earlier one back.
    """

    timing: str | None = None
    index: str | None = None
    last: str | None = None
    operation: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are published."""
        return tuple(name for name in (self.timing, self.index, self.last, self.operation) if name is not None)

    @property
    def types(self) -> Mapping[str, Scalar]:
        """The columns that are published, with their types."""
        kinds = (
            (self.timing, Scalar.STRING),
            (self.index, Scalar.LONG),
            (self.last, Scalar.BOOLEAN),
            (self.operation, Scalar.STRING),
        )
        return {name: kind for name, kind in kinds if name is not None}
