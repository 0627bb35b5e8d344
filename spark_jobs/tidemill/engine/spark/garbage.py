"""Frees the rows that earlier batches handed to Java.

Python's proxies of Java objects are part of reference cycles (an object keeps a method that was called, and the method
keeps the object), so only Python's cyclic collector frees them. The collector looks at old objects when Python has
many new ones; but Java's heap fills with the rows of every batch since the last full collection.
"""

from __future__ import annotations

import gc

MOST = 2**25
"""Bytes of Arrow data; they take three to five times as much of Java's heap (of 1 GB). Collecting takes 0.2 s."""

_handed = 0


def handed(size: int) -> None:
    """Note that rows of `size` bytes went from this process into a data frame."""
    global _handed  # noqa: PLW0603  Java's heap is the process's, as is the collector
    _handed += size


def let_go() -> None:
    """Collect garbage if enough was handed over since the last time; call it when no such data frame is needed."""
    global _handed  # noqa: PLW0603  see above
    if _handed >= MOST:
        _handed = 0
        gc.collect()
