"""What maintenance did, or would do, to one table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceTask:
    """A maintenance task on one table, done or only planned: `count` files or rows."""

    table: str
    what: str
    count: int
