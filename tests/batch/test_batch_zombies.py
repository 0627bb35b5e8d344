"""An attempt that stands still at a boundary while others finish its batch, or the next ones too, and then goes on.

It ends fenced, never with success, and changes nothing that anybody can see.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.projects import an_event, somebody
from support.recovery import WIDE_READS, WIDE_WRITES, finish, paused, recomputed
from tidemill.core.errors import Fenced
from tidemill.core.protocol.events import Committed

pytestmark = pytest.mark.spark

LONG = pytest.mark.crash
UNCLAIMED = ("ledger", "bounds", "scan", "planned")
# From the moment at which the plan is there until the moment before its commit.
CLAIMED = [
    "after:planned",
    *(f"{side}:{name}" for name in (*WIDE_READS[3:], *WIDE_WRITES[1:-1]) for side in ("before", "after")),
    "before:committed",
]
SHORT = [("before:published:sums", 0), ("before:published:sums", 3)]
"""The others are in `tests/machine/test_crashes_of_batches.py`, without Spark."""
CASES = [
    *(pytest.param(p, n, "delta-rs", marks=() if (p, n) in SHORT else LONG) for p in CLAIMED for n in (0, 3)),
    *(pytest.param("before:published:sums", n, "spark", marks=LONG) for n in (0, 3)),
]


@pytest.mark.parametrize(("place", "later", "writer"), CASES)
def test_a_zombie_is_fenced_and_changes_nothing(  # noqa: PLR0917
    tmp_path: Path, wide: Any, monkeypatch: pytest.MonkeyPatch, place: str, later: int, writer: str
) -> None:
    # Each place is met in both ways, for the time of one.
    mill = wide(tmp_path, writer, in_workers=not later)
    seen: dict[str, Any] = {}

    def meanwhile() -> None:
        finish(mill, later)
        seen.update(mill.everything())

    happened = paused(monkeypatch, place, meanwhile)
    with pytest.raises(Fenced):
        mill.run(executor=somebody("the slower"))
    assert happened
    assert mill.everything() == seen
    commits = [e.event for e in mill.project.ledger("wide").entries() if isinstance(e.event, Committed)]
    assert [(c.batch_id, c.attempt) for c in commits] == [(1, 1), (2, 2), *((n, 1) for n in range(3, 3 + later))]
    mill.catch_up()
    assert {name: mill.published(name) for name in ("sums", "totals")} == recomputed(mill)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "scan" else LONG) for name in UNCLAIMED])
def test_a_run_that_stands_still_before_it_has_a_claim_goes_on_with_what_is_there(
    tmp_path: Path, wide: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    mill = wide(tmp_path)
    happened = paused(monkeypatch, f"before:{name}", lambda: finish(mill, 1))
    mill.feed([an_event(200, "y")], topic="shop")
    mill.catch_up(drain=False)
    assert happened
    mill.catch_up()
    view = mill.project.ledger("wide").view()
    assert view.open_batch is None
    assert {name: mill.published(name) for name in ("sums", "totals")} == recomputed(mill)
