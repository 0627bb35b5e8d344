"""Lets go of the rows that earlier batches handed to Java.

Python's stand-ins for Java's objects refer to themselves (a method that was called is kept with its object, and the
object with the method), so that only Python's cyclic collector frees them. It looks at old objects when Python has many
new ones, but it is Java's heap that fills: with the rows of every batch since the last full collection.
"""

from __future__ import annotations

import gc

MOST = 2**25
"""Bytes of Arrow data, which take three to five times as much of a heap of 1 GB. Collecting takes some 0.2 s."""

_handed = 0


def handed(size: int) -> None:
    """Rows of so many bytes went from this process into a data frame."""
    global _handed  # noqa: PLW0603  Java's heap is the process's, as is the collector
    _handed += size


def let_go() -> None:
    """Collect, once enough was handed over since the last time; call it when nobody needs it any more."""
    global _handed  # noqa: PLW0603  see above
    if _handed >= MOST:
        _handed = 0
        gc.collect()
