"""A rewind takes offsets, watermark, state and tables back; the batches after it run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from support.projects import Mill, an_event, sums
from support.recovery import a_wide_mill, recomputed
from tidemill.core.errors import AmendmentError, OffsetsLost
from tidemill.core.plan.work import Kind
from tidemill.core.repair.selection import OfOffsets
from tidemill.repair.backfill import backfill
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.spark


BATCHES = 7


def some_batches(mill: Mill) -> list[dict[str, Any]]:
    """What readers saw after each of `BATCHES`, from before the first on."""
    seen = [mill.everything()]
    for number in range(BATCHES):
        mill.feed([an_event(7 * number + 1), an_event(7 * number, "b"), b"{cut" if number % 3 == 1 else an_event(2)])
        mill.run()
        seen.append(mill.everything())
    return seen


@pytest.mark.parametrize(
    ("to", "writer"),
    [
        pytest.param(0, "delta-rs", marks=pytest.mark.long),
        (2, "delta-rs"),
        pytest.param(2, "spark", marks=pytest.mark.long),
    ],
)
def test_after_a_rewind_all_is_as_it_was_and_running_again_gives_the_same(
    tmp_path: Path, spark: Any, writer: str, to: int
) -> None:
    mill = sums(tmp_path, spark, lateness="10 s", writer=writer)
    seen = some_batches(mill)
    [commit] = done(rewind(an_amendment(mill), to))
    assert (commit.kind, commit.batch_id) == (Kind.REWIND, BATCHES + 1)
    assert mill.everything() == seen[to]
    for number in range(to, BATCHES):
        mill.run(limit=3)
        assert mill.everything() == seen[number + 1]
    mill.catch_up()
    unbroken = sums(tmp_path / "unbroken", spark, lateness="10 s")
    some_batches(unbroken)
    unbroken.catch_up()
    assert mill.everything() == unbroken.everything()


def test_a_rewind_goes_back_behind_a_backfill_and_another_rewind(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, lateness="10 s")
    seen = some_batches(mill)
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    done(rewind(an_amendment(mill), 6))
    assert mill.everything() == seen[6]
    done(rewind(an_amendment(mill), 3))
    assert mill.everything() == seen[3]
    for number in range(3, BATCHES):
        mill.run(limit=3)
        assert mill.everything() == seen[number + 1]


def test_what_cannot_be_gone_back_to_is_refused(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1)])
    mill.run()
    mill.feed([an_event(11)])
    mill.run()
    with pytest.raises(AmendmentError, match="batch 7 has not committed; batches 1 to 2 have"):
        done(rewind(an_amendment(mill), 7))
    with pytest.raises(AmendmentError, match="nothing to take back"):
        done(rewind(an_amendment(mill), 2))
    mill.log.trim("events", 0, 2)
    with pytest.raises(OffsetsLost, match="events-0: offsets 1 to 1 are gone"):
        done(rewind(an_amendment(mill), 1))
    assert mill.project.ledger("sums").view().open_batch is None


def test_two_inputs_and_two_tables_go_back_together(tmp_path: Path, spark: Any) -> None:
    mill = a_wide_mill(tmp_path, spark)
    before = mill.everything()
    mill.run()
    done(rewind(an_amendment(mill), 1))
    assert mill.everything() == before
    mill.catch_up()
    assert {name: mill.published(name) for name in ("sums", "totals")} == recomputed(mill)
