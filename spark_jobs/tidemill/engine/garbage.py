"""Lets go of the rows that earlier batches handed to Java.

Python's stand-ins for Java's objects refer to themselves (a method that was called is kept with its object, and the
object with the method), so that only Python's cyclic collector frees them. It looks at old objects when Python has many
new ones, but it is Java's heap that fills: with the rows of every batch since the last full collection.
"""

from __future__ import annotations

import gc

MOST = 200_000
"""Rows; some 400 bytes each in a heap of 1 GB. A full collection takes about 0.1 s."""

_handed = 0


def handed(rows: int) -> None:
    """So many rows went from this process into a data frame."""
    global _handed  # noqa: PLW0603  Java's heap is the process's, as is the collector
    _handed += rows


def let_go() -> None:
    """Collect, once enough rows were handed over since the last time; call it when nobody needs them any more."""
    global _handed  # noqa: PLW0603  see above
    if _handed >= MOST:
        _handed = 0
        gc.collect()
