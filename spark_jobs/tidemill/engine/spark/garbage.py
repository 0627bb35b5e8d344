"""Frees what earlier batches left in Java: the rows that they handed over, and the plans of their jobs.

Python's proxies of Java objects are part of reference cycles (an object keeps a method that was called, and the method
keeps the object), so only Python's cyclic collector frees them. The collector looks at old objects when Python has
many new ones, which takes hundreds of batches; but Java's heap fills with what every batch left since then.
"""

from __future__ import annotations

import gc

MOST = 2**25
"""Bytes of Arrow data; they take three to five times as much of Java's heap (of 1 GB). Collecting takes 0.2 s."""

PLANS = 2**19
"""What a batch counts for even if it hands over no rows: the plans of its jobs take some 200 kB of Java's heap."""

_handed = 0


def handed(size: int) -> None:
    """Note that rows of `size` bytes went from this process into a data frame."""
    global _handed  # noqa: PLW0603  Java's heap is the process's, as is the collector
    _handed += size


def let_go() -> None:
    """Collect garbage if enough was handed over since the last time; call it when a batch has ended."""
    global _handed  # noqa: PLW0603  see above
    _handed += PLANS
    if _handed >= MOST:
        _handed = 0
        gc.collect()
