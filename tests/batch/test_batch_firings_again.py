"""Tables of firings on Spark: what is let in later, and what `verify` finds where time passed without records."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from batch.test_batch_buffers import checked
from support.firings import firings
from support.projects import NOW, Mill, an_event
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.inspect.verify import Scope, verify
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair

pytestmark = pytest.mark.spark

EACH = 'trigger=Repeatedly(AfterCount(1)), accumulation="discarding"'


def test_a_rejected_record_counts_in_the_window_of_then_and_a_late_one_stays_late(tmp_path: Path, spark: Any) -> None:
    mill = firings(tmp_path, spark, "Tumbling('10 s')", trigger=EACH, bounds=True)
    mill.feed([an_event(1, "a", 1), an_event(2, "a", 2_000_000), an_event(31, "a", 2_000_001), an_event(30, "a", 2)])
    mill.run()
    mill.feed([an_event(3, "a", 3)])
    mill.run()
    path = tmp_path / "data_contracts" / "events.odcs.yaml"
    path.write_text(path.read_text().replace("maximum: 1000000", "maximum: 3000000"))
    [replayed] = done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    [admitted] = done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    accounts = [commit.accounts["events"] for commit in (replayed, admitted)]
    assert [(account.aggregated, account.late) for account in accounts] == [(2, 0), (0, 1)]
    assert [row["offset"] for row in mill.own("late")] == [4]
    assert {row["watermark"] for row in mill.own("late")} == {NOW + timedelta(seconds=30)}
    assert sorted(row["amount"] for row in mill.published()) == [1, 2, 2_000_000, 2_000_001]
    checked(mill)


def test_a_global_window_with_a_trigger_ends_with_the_log_and_later_records_are_late(
    tmp_path: Path, spark: Any
) -> None:
    mill = firings(tmp_path, spark, "Global()", trigger="trigger=Never()")
    mill.feed([an_event(1, "a", 1)])
    mill.run(drain=True)
    mill.feed([an_event(2, "a", 2)])
    [commit] = mill.catch_up()
    assert (commit.accounts["events"].late, [row["offset"] for row in mill.own("late")]) == (1, [1])
    assert [row["amount"] for row in mill.published()] == [1]
    checked(mill)


def test_verify_lets_time_pass_in_batches_that_read_nothing(tmp_path: Path, spark: Any) -> None:
    trigger = 'trigger=Repeatedly(AfterProcessingTime("1 minute")), accumulation="discarding", index="nth"'
    mill = firings(tmp_path, spark, "Tumbling('1 hour')", trigger=trigger, bounds=True)
    for second, fed in ((0, 1), (61, 0), (70, 1), (80, 1), (131, 0), (140, 1), (200, 0)):
        mill.feed([an_event(second + n, "a", second) for n in range(fed)])
        mill.run(clock=NOW + timedelta(seconds=second))
    assert sorted((row["nth"], row["amounts"]) for row in mill.published()) == [(0, [0]), (1, [70, 80]), (2, [140])]
    checked(mill)


def test_a_window_whose_end_and_delay_pass_in_one_batch_fires_once(tmp_path: Path, spark: Any) -> None:
    trigger = 'trigger=AfterWatermark(early=AfterProcessingTime("0 s")), accumulation="discarding", timing="timing"'
    mill = firings(tmp_path, spark, "Tumbling('10 s')", trigger=trigger, bounds=True)
    mill.feed([an_event(1, "a", 1), an_event(11, "a", 2)])
    mill.run()
    assert sorted((row["timing"], row["amounts"]) for row in mill.published()) == [("EARLY", [2]), ("ON_TIME", [1])]
    checked(mill)


def test_firings_that_may_mix_two_meanings_are_not_compared(tmp_path: Path, spark: Any) -> None:
    mill = firings(tmp_path, spark, "TumblingBuffer(CountPolicy(3))")
    mill.feed([an_event(n, "a", n) for n in range(2)])
    mill.run()
    path = tmp_path / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace("!= 'nobody'", "!= 'none'"))
    mill = Mill(Project.load(tmp_path), spark, "firings")
    mill.feed([an_event(n, "a", n) for n in range(2, 6)])
    mill.run(from_now=Reason(by="somebody", why="a test"))
    place = TopicPartition("events", 0)
    for backfilled in (False, True):
        if backfilled:
            # Of the batches since the change alone: its keys go on from what the other meaning had left.
            done(backfill(an_amendment(mill), OfOffsets(since={place: 2}, until={place: 3})))
        assert sorted(row["amounts"] for row in mill.published()) == [[0, 1, 2], [3, 4, 5]]
        [found] = verify(an_amendment(mill), Scope())
        assert (found.differences.count, found.differences.compared, found.since is not None) == (0, 0, True)
