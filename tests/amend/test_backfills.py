"""Offsets of the past are read again: what readers see changes once, when all of it is there."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from support.projects import Mill, an_event, rows_of, sums
from tidemill.core.errors import AmendmentError, Incompatible, OffsetsLost
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.plan.work import Kind
from tidemill.core.repair.selection import OfOffsets, OfTimes, OfWindows
from tidemill.core.repair.side_outputs import Selection
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill, cancel, preview, resume
from tidemill.repair.repair import repair

pytestmark = pytest.mark.spark

TP = TopicPartition("events", 0)
ALL = OfOffsets(since={}, until={})


def offsets(since: int, until: int) -> OfOffsets:
    """These of the one partition."""
    return OfOffsets(since={TP: since}, until={TP: until})


def in_batches(mill: Mill, seconds: list[int], size: int) -> None:
    """Records fed and run, so many in a batch."""
    for start in range(0, len(seconds), size):
        mill.feed([an_event(s, "abc"[s % 3]) for s in seconds[start : start + size]])
        mill.run()


def double_amounts(mill: Mill) -> None:
    """The pipeline computed the wrong thing, and is mended: its windows mean the same, its rows differ."""
    path = mill.project.folder / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace('user="coalesce(user', 'amount="amount * 2", user="coalesce(user'))
    changed = Mill(Project.load(mill.project.folder), mill.session, mill.name)
    assert changed.run(from_now=Reason(by="somebody", why="a test")).position.since.keys() == {"sums"}


def by_window(mill: Mill) -> dict[tuple[int, str], tuple[int, int]]:
    """Published count and sum by second of the window's start and user."""
    return {(r["window_start"].second, r["user"]): (r["n"], r["amount"]) for r in mill.published()}


def test_a_backfill_of_everything_gives_what_one_batch_would_have(tmp_path: Path, spark: Any, writer: str) -> None:
    seconds = random.Random(4).sample(range(60), 30)
    mill = sums(tmp_path / "backfilled", spark, writer=writer)
    in_batches(mill, [*seconds, 100], 7)
    assert mill.own("late")
    done(backfill(an_amendment(mill), ALL))
    once = sums(tmp_path / "once", spark)
    once.feed([an_event(s, "abc"[s % 3]) for s in [*seconds, 100]])
    once.run()
    assert mill.published() == once.published()
    assert mill.own("late") == []


def test_a_part_of_the_past_is_computed_again_with_the_declaration_of_now(
    tmp_path: Path, spark: Any, writer: str
) -> None:
    mill = sums(tmp_path, spark, writer=writer)
    in_batches(mill, [1, 2, 11, 21, 31, 41], 2)
    before = by_window(mill)
    double_amounts(mill)
    [commit] = done(backfill(an_amendment(mill), offsets(2, 4)))
    assert (commit.kind, commit.accounts["events"].read) == (Kind.BACKFILL, 2)
    assert by_window(mill) == before | {(10, "c"): (1, 2), (20, "a"): (1, 2)}


def test_whole_batches_are_read_again(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    in_batches(mill, [1, 2, 11, 21, 31, 41], 2)
    shown = preview(an_amendment(mill), offsets(3, 5))
    assert (shown.records, shown.batches) == (4, 1)
    assert [str(r) for r in shown.ranges["events"]] == ["events-0 [2, 6)"]
    done(backfill(an_amendment(mill), offsets(3, 5)))
    assert sum(n for n, _ in by_window(mill).values()) == 5


def test_nobody_sees_a_backfill_before_its_last_batch(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = sums(tmp_path, spark, writer=writer)
    in_batches(mill, [1, 2, 11, 21, 31, 41], 2)
    double_amounts(mill)
    before = mill.published()
    steps = backfill(an_amendment(mill, most=2), ALL)
    for _ in range(2):
        commit = next(steps)
        assert commit.position.backfill is not None
        assert mill.published() == before
    assert next(steps).position.backfill is None
    assert next(steps, None) is None
    assert {key: amount for key, (_, amount) in by_window(mill).items()} == {
        (0, "b"): 2,
        (0, "c"): 2,
        (10, "c"): 2,
        (20, "a"): 2,
        (30, "b"): 2,
    }


def test_live_batches_go_on_between_those_of_a_backfill(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = sums(tmp_path, spark, writer=writer)
    in_batches(mill, [1, 2, 11, 21, 31, 41], 2)
    kinds = []
    second = 50
    for commit in backfill(an_amendment(mill, most=2), ALL):
        kinds.append(commit.kind)
        if commit.kind is Kind.BACKFILL and second < 70:
            mill.feed([an_event(second, "z")])
            second += 10
    assert kinds == [Kind.BACKFILL, Kind.LIVE, Kind.BACKFILL, Kind.LIVE, Kind.BACKFILL]
    mill.catch_up()
    once = sums(tmp_path / "once", spark)
    once.feed([*(an_event(s, "abc"[s % 3]) for s in (1, 2, 11, 21, 31, 41)), an_event(50, "z"), an_event(60, "z")])
    once.catch_up()
    assert mill.published() == once.published()


def test_a_job_is_gone_on_with_and_given_up(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    in_batches(mill, [1, 2, 11, 21, 31, 41], 2)
    before = mill.published()
    next(backfill(an_amendment(mill, most=2), ALL))
    with pytest.raises(AmendmentError, match="4 records left"):
        next(backfill(an_amendment(mill), ALL))
    with pytest.raises(AmendmentError, match="backfill is not complete"):
        done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection())) or done(repair_something(mill))
    [last] = done(cancel(an_amendment(mill)))
    assert last.position.backfill is None
    assert mill.published() == before
    double_amounts(mill)
    next(backfill(an_amendment(mill, most=2), ALL))
    assert done(resume(an_amendment(mill)))[-1].position.backfill is None
    assert sum(amount for _, amount in by_window(mill).values()) == 12
    with pytest.raises(AmendmentError, match="no backfill is open"):
        next(resume(an_amendment(mill)))


def repair_something(mill: Mill) -> Any:
    """A late record is admitted, which a repair would do at another time."""
    mill.feed([an_event(3)])
    mill.run()
    return repair(an_amendment(mill), SideOutput.LATE, Selection())


def test_rows_that_are_not_there_any_more_are_taken_out(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = sums(tmp_path, spark, writer=writer)
    mill.feed([an_event(1, "a"), an_event(2, "gone"), an_event(15, "gone"), an_event(25)])
    mill.run()
    path = mill.project.folder / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace("'nobody'", "'gone'"))
    with pytest.raises(Incompatible, match="changed what published numbers mean"):
        done(backfill(an_amendment(mill), ALL))
    Mill(Project.load(tmp_path), spark, "sums").run(from_now=Reason(by="somebody", why="a test"))
    done(backfill(an_amendment(mill), ALL))
    assert by_window(mill) == {(0, "a"): (1, 1)}


def test_quarantine_holds_what_is_rejected_now(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = sums(tmp_path, spark, writer=writer)
    mill.feed([an_event(1, amount=2_000_000), b"{cut", an_event(2), an_event(20)])
    mill.run()
    path = mill.project.folder / "data_contracts" / "events.odcs.yaml"
    path.write_text(path.read_text().replace("maximum: 1000000", "maximum: 100000000"))
    done(backfill(an_amendment(mill, most=2), ALL))
    assert [r["offset"] for r in rows_of(mill.project.table_uri("sums", "quarantine"))] == [1]
    assert by_window(mill) == {(0, "a"): (2, 2_000_001)}


def test_a_backfill_after_a_repair_takes_its_records_once(late_mill: Callable[..., Mill]) -> None:
    mill = late_mill()
    done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    before = mill.published()
    done(backfill(an_amendment(mill), offsets(5, 6)))
    assert mill.published() == before
    assert mill.own("late") == []


def test_late_records_count_in_a_backfill_that_reads_their_offsets_and_no_other(late_mill: Callable[..., Mill]) -> None:
    mill = late_mill()
    watermark = mill.project.ledger("sums").view().position.watermark
    before = by_window(mill)
    start = next(r["window_start"] for r in mill.published() if r["window_start"].second == 0)
    window = OfWindows(since=start, until=start.replace(second=10))
    assert [str(r) for r in preview(an_amendment(mill), window).ranges["events"]] == ["events-0 [0, 5)"]
    done(backfill(an_amendment(mill), window))
    assert by_window(mill) == before
    assert sorted(r["offset"] for r in mill.own("late")) == [5, 7]
    done(backfill(an_amendment(mill), offsets(5, 6)))
    assert by_window(mill) == before | {(0, "a"): (2, 11), (0, "c"): (1, 1)}
    assert mill.own("late") == []
    mill.feed([an_event(4)])
    mill.run()
    assert [r["offset"] for r in mill.own("late")] == [9]
    assert mill.project.ledger("sums").view().position.watermark == watermark


def test_what_the_log_lost_is_refused_or_accepted_by_name(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    in_batches(mill, [1, 2, 11, 21, 31, 41], 2)
    before = by_window(mill)
    mill.log.trim("events", 0, 3)
    with pytest.raises(OffsetsLost, match="events-0: offsets 0 to 2"):
        next(backfill(an_amendment(mill), ALL))
    assert by_window(mill) == before
    done(backfill(an_amendment(mill), ALL, accept_loss=True))
    assert by_window(mill) == {key: value for key, value in before.items() if key != (10, "c")}


def test_windows_and_times_mean_the_batches_that_have_them(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    in_batches(mill, [1, 2, 11, 21, 31, 41], 2)
    first = next(r["window_start"] for r in mill.published() if r["window_start"].second == 10)
    shown = preview(an_amendment(mill), OfWindows(since=first, until=first.replace(second=11)))
    assert [str(r) for r in shown.ranges["events"]] == ["events-0 [2, 4)"]
    nothing = first.replace(year=2020)
    assert preview(an_amendment(mill), OfTimes(since=nothing, until=None)).records == 6
    with pytest.raises(AmendmentError, match="no committed batch"):
        preview(an_amendment(mill), OfTimes(since=first.replace(year=2099), until=None))
    with pytest.raises(AmendmentError, match="was not read yet"):
        preview(an_amendment(mill), offsets(0, 99))
