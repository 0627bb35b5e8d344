"""Batches with ids: a value carries the batch that changed it last, and the same batch again never adds to it twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, Mill, an_event, rows_of, somebody, sums
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol import failpoints
from tidemill.repair.job import AmendmentJob
from tidemill.repair.rewind import rewind
from tidemill.run import batch


@pytest.fixture
def mill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mill]:
    """Three users in one window that is published at every change: man 3 times, dog 3, apple 10."""
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)
    made = sums(tmp_path, NO_SPARK, trigger="on_update")
    made.feed([an_event(1, "man")] * 3)
    made.run()
    made.feed([an_event(1, "apple")] * 10 + [an_event(1, "dog")] * 3)
    made.run()
    return made


def values(mill: Mill) -> dict[str, tuple[int, int]]:
    """Count and batch of each user."""
    return {r["user"]: (r["n"], r["batch_id"]) for r in rows_of(mill.project.published_uri("sums"))}


def test_a_batch_changes_its_own_keys_and_leaves_the_others(mill: Mill) -> None:
    assert values(mill) == {"man": (3, 1), "dog": (3, 2), "apple": (10, 2)}
    mill.feed([an_event(2, "man"), an_event(2, "man"), an_event(2, "dog")])
    mill.run()
    assert values(mill) == {"man": (5, 3), "dog": (4, 3), "apple": (10, 2)}


@pytest.mark.parametrize("place", ["state:sums", "published:sums"])
def test_the_same_batch_again_gives_the_same_values_though_more_has_come(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mill.feed([an_event(2, "man"), an_event(2, "man"), an_event(2, "dog")])
    monkeypatch.setenv(failpoints.VARIABLE, f"{place}=raise")
    with pytest.raises(failpoints.Injected):
        mill.run(executor=somebody("one"))
    monkeypatch.delenv(failpoints.VARIABLE)
    mill.feed([an_event(3, "apple")])
    mill.run(executor=somebody("one"))
    assert values(mill) == {"man": (5, 3), "dog": (4, 3), "apple": (10, 2)}
    mill.run()
    assert values(mill)["apple"] == (11, 4)


def test_a_batch_that_is_cut_differently_after_a_rewind_starts_from_the_values_before_it(mill: Mill) -> None:
    mill.feed([an_event(2, "man"), an_event(2, "man"), an_event(2, "dog")])
    mill.run()
    amendment = AmendmentJob(
        project=mill.project, pipeline="sums", reason=Reason(by="a test"), session=lambda: NO_SPARK
    )
    list(rewind(amendment, 2))
    assert values(mill) == {"man": (3, 1), "dog": (3, 2), "apple": (10, 2)}
    mill.run(limit=1)
    assert values(mill)["man"] == (4, 5)
    mill.run(limit=None)
    assert {user: n for user, (n, _) in values(mill).items()} == {"man": 5, "dog": 4, "apple": 10}
