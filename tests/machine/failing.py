"""Where batches of the pipeline `sums` can fail, and failing there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tidemill.core.errors import TidemillError
from tidemill.core.protocol import failpoints

READS = ("scan", "records:sums", "panes:sums")
WRITES = ("planned", "state:sums", "audited", "corrections", "quarantine", "late", "published:sums", "committed")
FAILURES = [
    *(f"{side}:{place}=raise" for place in (*READS, *WRITES) for side in ("before", "after")),
    *(f"{place}=lose" for place in WRITES),
]


@contextmanager
def failing(failure: str | None) -> Iterator[None]:
    """Inside the block, the place fails; what that leads to ends the block."""
    if failure is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch, suppress(TidemillError):
        patch.setattr(failpoints, "_lost", set())
        patch.setenv(failpoints.VARIABLE, failure)
        yield


@contextmanager
def allowed_while(allowed: Callable[[], bool], *kinds: type[TidemillError]) -> Iterator[None]:
    """What is inside may be refused so while that is allowed."""
    try:
        yield
    except kinds:
        if not allowed():
            raise
