"""What tests of recovery begin with: a batch that writes to every table, and the places where it can be interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.projects import Mill, an_event, sums

WRITES = ["planned", "state:sums", "audited", "quarantine", "late", "published:sums", "committed"]
"""The writes of a batch of `a_begun_mill`, in their order: each has a failpoint right after it."""


def a_begun_mill(folder: Path, session: Any, **settings: Any) -> Mill:
    """One committed batch, and records of every fate for the next."""
    mill = sums(folder, session, lateness="20 s", **settings)
    mill.feed([an_event(1), an_event(2, "b"), an_event(50)])
    mill.run()
    mill.feed([an_event(31, amount=7), an_event(3), b"{cut", an_event(4, "nobody"), an_event(61), an_event(52, "b")])
    return mill
