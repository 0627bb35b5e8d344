"""Every boundary of a batch, every way to fail there, alone and again, without Spark: nothing changes in the end.

The pipeline has two inputs, two published tables, and rejected, late and filtered records. The oracle is the unbroken
run, and a plain recomputation from the raw log. `tests/batch/test_crash_matrix.py` does the same with Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from support.projects import Mill, an_event, somebody
from support.recovery import WIDE_READS, WIDE_WRITES, fail, fail_or_commit, finish, paused, recomputed
from support.short_forms import crossed, shortened
from tidemill.core.errors import Fenced
from tidemill.core.protocol import failpoints
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.failpoints import VARIABLE
from tidemill.project.project import Project
from tidemill.run import after_commit

Wide = Callable[[Path], Mill]
Tables = dict[str, list[dict[str, Any]]]

SIDES = ("before:{}=raise", "after:{}=raise", "{}=lose")
# From the moment at which the plan is there until the moment before its commit.
CLAIMED = [
    "after:planned",
    *(f"{side}:{name}" for name in (*WIDE_READS[3:], *WIDE_WRITES[1:-1]) for side in ("before", "after")),
    "before:committed",
]
BEFORE_WRITES = [f"before:{name}" for name in WIDE_WRITES[1:]]
"""Where whoever sleeps would write next: what he reads before changes nothing."""

pytestmark = pytest.mark.usefixtures("tiny")


@pytest.fixture(autouse=True)
def _answers_that_can_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test loses its own: an answer is lost once in a process."""
    monkeypatch.setattr(failpoints, "_lost", set())


def test_the_engine_without_spark_comes_to_every_boundary_and_to_the_writes_in_their_order(
    tmp_path: Path, tiny_wide: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[tuple[str, str]] = []
    monkeypatch.setattr(failpoints, "_reach", lambda side, name, _: met.append((side, name)))
    tiny_wide(tmp_path).catch_up()
    assert {name for _, name in met} == {*WIDE_READS, *WIDE_WRITES}
    assert [reached for reached in met if reached[1] in WIDE_WRITES] == [
        (side, name) for name in WIDE_WRITES for side in ("before", "after")
    ]


@pytest.mark.parametrize(
    ("side", "again"), shortened(product(["before", "after"], [0, 1]), [("before", 0), ("after", 0)], pytest.mark.crash)
)
@pytest.mark.parametrize("name", [*WIDE_READS, *WIDE_WRITES])
def test_a_step_that_fails_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path,
    tiny_wide: Wide,
    tiny_whole: Tables,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    side: str,
    again: int,
) -> None:
    mill = tiny_wide(tmp_path)
    fail(mill, monkeypatch, f"{side}:{name}=raise")
    monkeypatch.setenv(VARIABLE, f"{side}:{name}=raise")
    for _ in range(again):
        # A retry does not come to every step: the plan is there, and after the commit nothing is left to do.
        fail_or_commit(mill)
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == tiny_whole


@pytest.mark.parametrize("place", WIDE_WRITES)
def test_an_answer_that_is_lost_changes_nothing_in_the_end(
    tmp_path: Path, tiny_wide: Wide, tiny_whole: Tables, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mill = tiny_wide(tmp_path)
    fail(mill, monkeypatch, f"{place}=lose")
    mill.catch_up()
    assert mill.everything() == tiny_whole


@pytest.mark.parametrize(("first", "action"), crossed(WIDE_WRITES[:-1], SIDES, mark=pytest.mark.crash))
def test_a_retry_that_fails_at_its_claim_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, tiny_wide: Wide, tiny_whole: Tables, monkeypatch: pytest.MonkeyPatch, first: str, action: str
) -> None:
    mill = tiny_wide(tmp_path)
    fail(mill, monkeypatch, f"{first}=raise")
    fail(mill, monkeypatch, action.format("claimed"))
    mill.catch_up()
    assert mill.everything() == tiny_whole


@pytest.mark.parametrize("action", SIDES)
def test_a_cancellation_that_fails_changes_nothing_in_the_end(
    tmp_path: Path, tiny_wide: Wide, tiny_whole: Tables, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    mill = tiny_wide(tmp_path)
    fail(mill, monkeypatch, "state:sums=raise")
    pipeline = tmp_path / "pipelines" / "pipeline.py"
    pipeline.write_text(pipeline.read_text().replace("!= 'nobody'", "<> 'nobody'"))
    changed = Mill(Project.load(tmp_path), mill.session, "wide")
    fail(changed, monkeypatch, action.format("cancelled"))
    changed.catch_up()
    assert changed.everything() == tiny_whole


@pytest.mark.parametrize("side", ["before", "after"])
def test_folding_files_that_fails_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path,
    tiny_wide: Wide,
    tiny_whole: Tables,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    side: str,
) -> None:
    mill = tiny_wide(tmp_path)
    monkeypatch.setattr(after_commit, "EVERY", 1)
    monkeypatch.setenv(VARIABLE, f"{side}:upkeep=raise")
    mill.run(drain=True)
    assert "files were not folded after batch 2" in caplog.text
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == tiny_whole


@pytest.mark.parametrize(
    ("place", "later"),
    [
        *((p, 0) if p in BEFORE_WRITES else pytest.param(p, 0, marks=pytest.mark.crash) for p in CLAIMED),
        *(("before:published:sums", 3), ("after:state:totals", 3)),
    ],
)
def test_a_zombie_is_fenced_and_changes_nothing(
    tmp_path: Path, tiny_wide: Wide, monkeypatch: pytest.MonkeyPatch, place: str, later: int
) -> None:
    mill = tiny_wide(tmp_path)
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


@pytest.mark.parametrize("name", ["ledger", "bounds", "scan", "planned"])
def test_a_run_that_stands_still_before_it_has_a_claim_goes_on_with_what_is_there(
    tmp_path: Path, tiny_wide: Wide, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    mill = tiny_wide(tmp_path)
    happened = paused(monkeypatch, f"before:{name}", lambda: finish(mill, 1))
    mill.feed([an_event(200, "y")], topic="shop")
    mill.catch_up(drain=False)
    assert happened
    mill.catch_up()
    assert mill.project.ledger("wide").view().open_batch is None
    assert {table: mill.published(table) for table in ("sums", "totals")} == recomputed(mill)
