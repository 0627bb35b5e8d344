"""Every boundary of a batch, every way to fail there: what readers see in the end is what an unbroken run leaves.

The pipeline has two inputs, two published tables, and rejected, late and filtered records. The oracle is the unbroken
run, and a plain recomputation from the raw log. `tests/machine/test_crashes_of_batches.py` has all of it without Spark;
what of it stands here unmarked shows that batches come to the same end, in Spark's workers and in their own process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.projects import Mill
from support.recovery import WIDE_READS, WIDE_WRITES, fail, fail_or_commit
from tidemill.core.protocol import failpoints
from tidemill.core.protocol.failpoints import VARIABLE, Injected, boundaries_of
from tidemill.project.project import Project
from tidemill.run import after_commit

pytestmark = pytest.mark.spark

ELSEWHERE = ("claimed", "cancelled", "upkeep")
"""What only a second attempt, a changed declaration or a 64th batch comes to."""
BY_SPARK = [w for w in WIDE_WRITES if w.partition(":")[0] in ("state", "quarantine", "late", "published")]
"""What Spark's writer writes; the ledger is written without Spark in any case."""
LONG = pytest.mark.crash

RAISED = [
    (f"{side}:{name}", again)
    for name in (*WIDE_READS, *WIDE_WRITES)
    for side in ("before", "after")
    for again in (0, 1)
]
SHORT = ("state:sums", "published:sums")
SHORT_RAISED = {*((f"after:{name}", 0) for name in SHORT), (f"after:{SHORT[-1]}", 1)}


@pytest.mark.parametrize("in_workers", [False, True])
def test_no_boundary_is_left_out(tmp_path: Path, wide: Any, monkeypatch: pytest.MonkeyPatch, in_workers: bool) -> None:
    met: list[str] = []
    monkeypatch.setattr(failpoints, "_reach", lambda side, name, _: met.append(name) if side == "before" else None)
    mill = wide(tmp_path, in_workers=in_workers)
    mill.catch_up()
    listed = {b.name for b in boundaries_of(mill.project.pipeline("wide"))}
    assert set(met) == listed - set(ELSEWHERE)
    assert set(met) == {*WIDE_READS, *WIDE_WRITES}
    # An earlier batch rejects nothing.
    assert [name for name in met if name in WIDE_WRITES][-len(WIDE_WRITES) :] == WIDE_WRITES


@pytest.mark.parametrize("in_workers", [False, True])
def test_every_write_of_a_batch_is_inside_a_boundary(
    tmp_path: Path, wide: Any, monkeypatch: pytest.MonkeyPatch, in_workers: bool
) -> None:
    mill, outside = wide(tmp_path, in_workers=in_workers), []
    lake = Path(mill.project.settings.lake)

    def entries() -> set[Path]:
        return set(lake.rglob("_delta_log/*.json"))

    seen = entries()

    def reach(side: str, name: str, _: int) -> None:
        nonlocal seen
        if side == "before":
            outside.extend((name, path) for path in entries() - seen)
        seen = entries()

    monkeypatch.setattr(failpoints, "_reach", reach)
    mill.run(drain=True)
    assert outside == []
    assert entries() == seen, "nothing is written after the last boundary"
    assert (lake / "pipelines" / "wide" / "late" / "_delta_log").is_dir()


@pytest.mark.parametrize(
    ("place", "again"),
    [case if case in SHORT_RAISED else pytest.param(*case, marks=LONG) for case in RAISED],
)
def test_a_step_that_fails_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, wide: Any, whole: Any, monkeypatch: pytest.MonkeyPatch, place: str, again: int
) -> None:
    # Each place is met in both ways, for the time of one.
    mill = wide(tmp_path, in_workers=not again)
    monkeypatch.setenv(VARIABLE, f"{place}=raise")
    with pytest.raises(Injected):
        mill.run(drain=True)
    for _ in range(again):
        # A retry does not come to every step: the plan is there, and after the commit nothing is left to do.
        fail_or_commit(mill)
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == whole


@pytest.mark.parametrize("action", [pytest.param("raise", marks=LONG), "lose"])
@pytest.mark.parametrize(
    "place", [pytest.param(w, marks=pytest.mark.long if w == "published:sums" else LONG) for w in BY_SPARK]
)
def test_a_write_of_spark_that_fails_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, wide: Any, whole: Any, monkeypatch: pytest.MonkeyPatch, place: str, action: str
) -> None:
    mill = wide(tmp_path, "spark")
    monkeypatch.setenv(VARIABLE, f"{place}={action}")
    if action == "raise":
        with pytest.raises(Injected):
            mill.run(drain=True)
    else:
        mill.run(drain=True)
        assert failpoints._lost
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == whole


@pytest.mark.parametrize("place", [w if w == SHORT[-1] else pytest.param(w, marks=LONG) for w in WIDE_WRITES])
def test_an_answer_that_is_lost_changes_nothing_in_the_end(
    tmp_path: Path, wide: Any, whole: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mill = wide(tmp_path)
    monkeypatch.setenv(VARIABLE, f"{place}=lose")
    assert mill.run(drain=True).attempt == 1
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == whole


SIDES = ["before:{}=raise", "after:{}=raise", "{}=lose"]


@LONG
@pytest.mark.parametrize("action", SIDES)
@pytest.mark.parametrize("first", WIDE_WRITES[:-1])
def test_a_retry_that_fails_at_its_claim_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, wide: Any, whole: Any, monkeypatch: pytest.MonkeyPatch, first: str, action: str
) -> None:
    mill = wide(tmp_path)
    fail(mill, monkeypatch, f"{first}=raise")
    fail(mill, monkeypatch, action.format("claimed"))
    mill.catch_up()
    assert mill.everything() == whole


@LONG
@pytest.mark.parametrize("action", SIDES)
def test_a_cancellation_that_fails_changes_nothing_in_the_end(
    tmp_path: Path, wide: Any, whole: Any, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    mill = wide(tmp_path)
    fail(mill, monkeypatch, "state:sums=raise")
    pipeline = tmp_path / "pipelines" / "pipeline.py"
    pipeline.write_text(pipeline.read_text().replace("!= 'nobody'", "<> 'nobody'"))
    changed = Mill(Project.load(tmp_path), mill.session, "wide")
    fail(changed, monkeypatch, action.format("cancelled"))
    changed.catch_up()
    assert changed.everything() == whole


@LONG
@pytest.mark.parametrize("action", ["before:upkeep=raise", "after:upkeep=raise"])
def test_upkeep_that_fails_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path,
    wide: Any,
    whole: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    action: str,
) -> None:
    mill = wide(tmp_path)
    monkeypatch.setattr(after_commit, "EVERY", 1)
    monkeypatch.setenv(VARIABLE, action)
    mill.run(drain=True)
    assert "files were not folded after batch 2" in caplog.text
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == whole
