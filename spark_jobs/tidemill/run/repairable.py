"""What to do about a damaged ledger or table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidemill.core.errors import LedgerDamaged, TableDamaged


@contextmanager
def repairable(pipeline: str) -> Iterator[None]:
    """Add the usual fix to errors about damage that name no other."""
    try:
        yield
    except (LedgerDamaged, TableDamaged) as error:
        error.fix = error.fix or (
            f"put it back as it was; else build all again from the log: `tidemill rebuild {pipeline}`"
        )
        raise
