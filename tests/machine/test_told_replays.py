"""What a backfill of tables of firings does to a history that is told batch by batch, on the tiny engine."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from machine.failing import failing
from support.commands import type_command
from support.firings import changed, firings
from support.projects import NO_SPARK, NOW, TOTALS_CONTRACT, Mill, an_event
from tidemill.core.errors import AmendmentError, EngineError, NothingRead, OffsetsLost
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.protocol.failpoints import Injected
from tidemill.core.repair.selection import OfOffsets, windows_of
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.repair.state_compaction import Folding
from tidemill.engine.publish.kept_reader import KeptReader
from tidemill.maintain import maintenance
from tidemill.maintain.maintenance import maintain
from tidemill.maintain.state_compaction import fold
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill, preview
from tidemill.repair.rebuild import rebuild
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.usefixtures("tiny", "much_state")

ALL = OfOffsets(since={}, until={})
EACH = 'trigger=Repeatedly(AfterCount(1)), accumulation="discarding"'
PLACE = TopicPartition("events", 0)
COUNT_3 = "TumblingBuffer(CountPolicy(3))"


def since(offset: int) -> OfOffsets:
    return OfOffsets(since={PLACE: offset}, until={PLACE: offset + 1})


def a_mill(folder: Path, *amounts: int, window: str = COUNT_3, each: int = 1, **more: Any) -> Mill:
    """Events of one user, so many in each batch."""
    mill = firings(folder, NO_SPARK, window, collect=False, **more)
    for at in range(0, len(amounts), each):
        mill.feed([an_event(at + n, "a", amount) for n, amount in enumerate(amounts[at : at + each])])
        mill.run()
    return mill


def loosened(mill: Mill) -> Mill:
    """The pipeline with a contract that lets greater amounts in."""
    path = mill.project.folder / "data_contracts" / "events.odcs.yaml"
    path.write_text(path.read_text().replace("maximum: 1000000", "maximum: 3000000"))
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)


def sums(mill: Mill) -> list[int]:
    return sorted(row["amount"] for row in mill.published("firings"))


def test_a_record_that_passes_now_counts_where_it_was_read_and_shifts_what_follows(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, 1, 2_000_000, 2, 3, 4)
    assert sums(mill) == [1 + 2 + 3]
    mill = loosened(mill)
    [commit] = done(backfill(an_amendment(mill, most=1), since(1)))
    assert (commit.accounts["events"].read, sums(mill), mill.own("quarantine")) == (4, [1 + 2_000_000 + 2], [])
    mill.feed([an_event(9, "a", 5)])
    mill.run()
    assert sums(mill) == [3 + 4 + 5, 1 + 2_000_000 + 2]


def test_a_record_that_a_repair_let_in_counts_where_the_repair_came(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, 1, 2_000_000, 2)
    mill = loosened(mill)
    done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    mill.feed([an_event(3, "a", 4), an_event(4, "a", 5)])
    mill.run()
    assert sums(mill) == [1 + 2 + 2_000_000]
    # It reads the first batch, because the repair shares a record with the second one.
    assert [c.batch_id for c in preview(an_amendment(mill), since(3)).covers] == [5]
    done(backfill(an_amendment(mill), since(1)))
    assert sums(mill) == [1 + 2 + 2_000_000]
    mill.feed([an_event(9, "a", 6)])
    mill.run()
    assert sums(mill) == [4 + 5 + 6, 1 + 2 + 2_000_000]


def test_a_changed_filter_holds_for_the_whole_history_after_a_backfill_of_any_part(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, 1, 2, 3, 4, 5, 6, 7)
    mill.feed([an_event(20, "nobody", 10), an_event(21, "nobody", 20)])
    mill.run()
    mill = changed(mill, "!= 'nobody'", "!= 'b'")
    mill.feed([an_event(22, "nobody", 30), an_event(23, "b", 40)])
    mill.run(from_now=Reason(by="ana", why="nobody counts"))
    assert sums(mill) == [1 + 2 + 3, 4 + 5 + 6]
    found = preview(an_amendment(mill), since(7))
    assert found.replaying is not None
    assert (found.replaying.replay.since, found.batches, found.records) == (1, 1, 11)
    assert "means something else since batch 9" in str(found.replaying.why)
    done(backfill(an_amendment(mill), since(7)))
    assert sums(mill) == [1 + 2 + 3, 4 + 5 + 6, 10 + 20 + 30]
    # Now all of it has one meaning, so that a later part needs no more than itself.
    mill.feed([an_event(24, "a", 8), an_event(25, "a", 9)])
    mill.run()
    assert sums(mill) == [1 + 2 + 3, 4 + 5 + 6, 7 + 8 + 9, 10 + 20 + 30]
    later = preview(an_amendment(mill), since(11)).replaying
    assert later is not None
    assert (later.replay.since, later.why) == (11, None)


def test_late_records_stay_late_by_the_watermark_of_then_and_the_present_lateness_decides(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "Tumbling('10 s')", trigger=EACH, lateness="5 s", bounds=True, collect=False)
    for seconds in ([1, 14], [2], [31], [3], [24]):
        mill.feed([an_event(second, "a", second) for second in seconds])
        mill.run()
    assert (sums(mill), [row["offset"] for row in mill.own("late")]) == ([1, 2, 14, 24, 31], [4])
    [commit] = done(backfill(an_amendment(mill), ALL))
    assert (sums(mill), [row["offset"] for row in mill.own("late")]) == ([1, 2, 14, 24, 31], [4])
    assert (commit.accounts["events"].aggregated, commit.accounts["events"].late) == (5, 1)
    mill = changed(mill, 'allowed_lateness="5 s"', 'allowed_lateness="0 s"')
    mill.feed([an_event(32, "a", 32)])
    mill.run(from_now=Reason(by="ana", why="no lateness"))
    done(backfill(an_amendment(mill), ALL))
    assert (sums(mill), [row["offset"] for row in mill.own("late")]) == ([1, 14, 31, 32], [2, 4, 5])
    mill = changed(mill, 'allowed_lateness="0 s"', 'allowed_lateness="1 minute"')
    mill.feed([an_event(33, "a", 33)])
    mill.run(from_now=Reason(by="ana", why="much lateness"))
    done(backfill(an_amendment(mill), ALL))
    assert (sums(mill), mill.own("late")) == ([1, 2, 3, 14, 24, 31, 32, 33], [])


def test_a_second_backfill_a_rewind_behind_the_first_a_fold_and_a_rebuild_all_hold(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, *range(1, 12))
    mill.feed([an_event(20, "nobody", 100)])
    mill.run()
    mill = changed(mill, "!= 'nobody'", "!= 'b'")
    mill.feed([an_event(21, "nobody", 200)])
    mill.run(from_now=Reason(by="ana", why="nobody counts"))
    before = sums(mill)
    [first] = done(backfill(an_amendment(mill), since(3)))
    mill.feed([an_event(22, "nobody", 300), an_event(23, "a", 12)])
    mill.run()
    whole = [6, 15, 24, 33, 600]
    assert sums(mill) == whole
    [second] = done(backfill(an_amendment(mill), since(13)))
    assert (sums(mill), second.accounts["events"].read) == (whole, 2)
    [third] = done(backfill(an_amendment(mill), since(1)))
    assert (sums(mill), third.accounts["events"].read) == (whole, 15)
    list(fold(an_amendment(mill), Folding(group=3, overlap=0.1, groups=1)))
    done(rewind(an_amendment(mill), first.batch_id - 1))
    assert sums(mill) == before
    mill.run()
    done(backfill(an_amendment(mill), ALL))
    assert sums(mill) == whole
    done(rebuild(an_amendment(mill)))
    assert sums(Mill(Project.load(tmp_path), NO_SPARK, "firings")) == whole


def test_state_that_maintenance_removed_is_computed_from_the_begin_of_the_log_if_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "AT_LEAST", 1)
    mill = a_mill(tmp_path, *range(1, 12))
    list(fold(an_amendment(mill), Folding(group=4, overlap=0.1, groups=1)))
    found = preview(an_amendment(mill), since(4)).replaying
    assert found is not None
    # A slice of batches 4 to 7 is one, and what was kept before them is still there, though no slice of now has it.
    assert (found.replay.since, found.why) == (4, None)
    mill.run()
    list(maintain(mill.project, mill.name, keep=timedelta(0), now=datetime.now(UTC) + timedelta(days=1)))
    found = preview(an_amendment(mill), since(4)).replaying
    assert found is not None
    assert found.replay.since == 1
    assert "maintenance has removed what keys of firings kept before batch 4" in str(found.why)
    done(backfill(an_amendment(mill), since(4)))
    assert sums(mill) == [6, 15, 24]
    mill.log.trim("events", 0, 2)
    mill = loosened(mill)
    with pytest.raises(OffsetsLost, match=r"offsets 0 to 1; nothing was moved; firings follow") as raised:
        done(backfill(an_amendment(mill), since(4)))
    assert "tidemill rebuild firings --accept-loss" in raised.value.fix
    assert sums(mill) == [6, 15, 24]


@pytest.mark.parametrize("seen", [True, False])
def test_maintenance_leaves_the_state_that_an_open_backfill_begins_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    monkeypatch.setattr(maintenance, "AT_LEAST", 1)
    mill = a_mill(tmp_path, *range(1, 12), window="TumblingBuffer(CountPolicy(4))")
    list(fold(an_amendment(mill), Folding(group=4, overlap=0.1, groups=1)))
    with failing("after:planned=raise"), suppress(Injected):
        done(backfill(an_amendment(mill), since(4)))
    opened = mill.project.ledger("firings").view().open_batch
    assert opened is not None
    assert opened.plan.job is not None
    assert opened.plan.job.replay is not None
    # The state of batches 1 to 3, which a fold has hidden since.
    assert opened.plan.job.replay.before.through == 3
    if not seen:
        # It had read the ledger before the backfill was planned.
        monkeypatch.setattr(maintenance._Kept, "replays", False)
    list(maintain(mill.project, mill.name, keep=timedelta(0), now=datetime.now(UTC) + timedelta(days=1)))
    if not seen:
        with pytest.raises(EngineError, match="maintenance has removed what keys kept before batch 4 since batch 14"):
            mill.run()
        return
    mill.run()
    assert sums(mill) == [1 + 2 + 3 + 4, 5 + 6 + 7 + 8]
    mill.feed([an_event(20, "a", 12)])
    mill.run()
    assert sums(mill) == [10, 26, 9 + 10 + 11 + 12]


def test_state_that_maintenance_removes_while_a_backfill_begins_is_never_taken_for_no_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "AT_LEAST", 1)
    mill = a_mill(tmp_path, *range(1, 12), window="TumblingBuffer(CountPolicy(4))")
    before, read = sums(mill), KeptReader.of
    list(fold(an_amendment(mill), Folding(group=4, overlap=0.1, groups=1)))

    def just_before(self: KeptReader, *of: Any) -> Any:
        # It had read the ledger before the backfill was planned.
        monkeypatch.setattr(maintenance._Kept, "replays", False)
        list(maintain(mill.project, mill.name, keep=timedelta(0), now=datetime.now(UTC) + timedelta(days=1)))
        return read(self, *of)

    monkeypatch.setattr(KeptReader, "of", just_before)
    with pytest.raises(EngineError, match="maintenance has removed what keys kept before batch 4 since batch 14"):
        done(backfill(an_amendment(mill), since(4)))
    assert sums(mill) == before


def test_a_backfill_needs_nothing_of_the_log_before_its_begin(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, 1, 2, 3, 4, 5)
    mill.log.trim("events", 0, 3)
    [commit] = done(backfill(an_amendment(mill), since(3)))
    assert (commit.accounts["events"].read, sums(mill)) == (2, [6])
    mill.feed([an_event(9, "a", 6)])
    mill.run()
    assert sums(mill) == [6, 15]


@pytest.mark.parametrize("accept_loss", [False, True])
def test_records_that_the_log_has_lost_are_never_left_out_of_firings(tmp_path: Path, accept_loss: bool) -> None:
    mill = a_mill(tmp_path, 1, 2, 3, 4, 5)
    mill.log.trim("events", 0, 4)
    with pytest.raises(OffsetsLost, match="offsets 3 to 3; nothing was moved; firings follow from all records"):
        done(backfill(an_amendment(mill), since(3), accept_loss=accept_loss))


def test_event_times_choose_the_batches_from_the_first_that_came_so_far(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "Tumbling('10 s')", trigger=EACH, bounds=True, collect=False, delay="5 s")
    for second in (1, 12, 8, 21, 33):
        mill.feed([an_event(second, "a", second)])
        mill.run()
    found = preview(an_amendment(mill), windows_of("windows", "2026-01-01T00:00:10/2026-01-01T00:00:20"))
    assert found.replaying is not None
    assert (found.replaying.replay.since, found.records, found.asked) == (2, 4, None)
    found = preview(an_amendment(mill), windows_of("windows", "2026-01-01T00:00:31/2026-01-01T00:00:32"))
    assert found.replaying is not None
    assert found.replaying.replay.since == 5
    with pytest.raises(NothingRead):
        preview(an_amendment(mill), windows_of("windows", "2026-01-01T00:01/2026-01-01T00:02"))


def test_event_times_choose_repairs_that_let_in_what_is_newer_than_all_else(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "Tumbling('10 s')", trigger=EACH, bounds=True, collect=False)
    mill.feed([an_event(1, "a", 1), an_event(31, "a", 2_000_000)])
    mill.run()
    mill = loosened(mill)
    done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    for _ in range(2):
        # It begins with the batch that had put the record aside.
        found = preview(an_amendment(mill), windows_of("windows", "2026-01-01T00:00:30/2026-01-01T00:00:40")).replaying
        assert (found and found.replay.since) == 1
        mill.feed([an_event(33, "a", 2)])
        mill.run()
    with pytest.raises(NothingRead):
        preview(an_amendment(mill), windows_of("windows", "2100-01-01/2100-01-02"))


def test_event_times_choose_nothing_where_windows_follow_the_order_of_records(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, 1, 2)
    with pytest.raises(AmendmentError, match="a firing of firings is made of depends on all records of its key"):
        preview(an_amendment(mill), windows_of("windows", "2026-01-01/2026-01-02"))


TOTALS = """
    events.window(Tumbling("10 s")).aggregate(n=Count(), amount=Sum("amount")).publish("totals", contract="totals")
    events.window(TumblingBuffer(CountPolicy(3))).aggregate(n=Count(), amount=Sum("amount")).publish(
        "firings", contract="firings"
    )
"""
BOTH = """
from tidemill import *

with Pipeline("firings", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts").filter("coalesce(user, '') != 'nobody'")
    events = events.with_columns(user="coalesce(user, 'unknown')").key_by("user")
"""
WITH_BOUNDS = """\
      - {name: window_start, logicalType: timestamp, required: true}
      - {name: window_end, logicalType: timestamp, required: true}
"""


def with_totals(folder: Path) -> Mill:
    """A pipeline with a table of windows and one of firings."""
    mill = firings(folder, NO_SPARK, COUNT_3, collect=False)
    (folder / "data_contracts" / "totals.odcs.yaml").write_text(
        TOTALS_CONTRACT.replace(", primaryKey: true", "") + WITH_BOUNDS
    )
    (folder / "pipelines" / "pipeline.py").write_text(BOTH + TOTALS)
    return Mill(Project.load(folder), mill.session, mill.name)


def test_a_table_that_comes_back_after_a_backfill_without_it_begins_anew(tmp_path: Path) -> None:
    mill = with_totals(tmp_path)
    for second in range(1, 6):
        mill.feed([an_event(second, "a", second)])
        mill.run()
    both = (tmp_path / "pipelines" / "pipeline.py").read_text()
    mill = changed(mill, both[both.index("    events.window(TumblingBuffer") :], "")
    done(backfill(an_amendment(mill), since(3)))
    mill.feed([an_event(6, "a", 6)])
    mill.run()
    (tmp_path / "pipelines" / "pipeline.py").write_text(both)
    mill = Mill(Project.load(tmp_path), mill.session, mill.name)
    for second in range(7, 10):
        mill.feed([an_event(second, "a", second)])
        mill.run(from_now=Reason(by="ana", why="back"))
    assert sums(mill) == [1 + 2 + 3, 7 + 8 + 9]


def test_one_batch_serves_tables_of_windows_and_of_firings(tmp_path: Path) -> None:
    mill = with_totals(tmp_path)
    for second, user in enumerate(["a", "a", "nobody", "a", "nobody", "nobody", "a"]):
        mill.feed([an_event(5 * second, user, second)])
        mill.run()
    mill = changed(mill, "!= 'nobody'", "!= 'b'")
    mill.feed([an_event(50, "a", 7)])
    mill.run(from_now=Reason(by="ana", why="nobody counts"))
    [commit] = done(backfill(an_amendment(mill, most=1), since(3)))
    assert commit.accounts["events"].read == 8
    assert sums(mill) == [0 + 1 + 3, 2 + 4 + 5]
    totals = [(r["user"], (r["window_start"] - NOW).total_seconds(), r["amount"]) for r in mill.published("totals")]
    assert sorted(totals) == [
        *[("a", 0, 1), ("a", 10, 3), ("a", 30, 6)],
        *[("nobody", 10, 2), ("nobody", 20, 9)],
    ]


def test_time_that_passed_without_records_passes_again_and_the_next_moment_stays_known(tmp_path: Path) -> None:
    trigger = 'trigger=Repeatedly(AfterProcessingTime("1 minute")), accumulation="discarding", index="nth"'
    mill = firings(tmp_path, NO_SPARK, "Tumbling('1 hour')", trigger=trigger, bounds=True, collect=False)
    for second, fed in ((0, 1), (61, 0), (70, 1), (80, 1), (131, 0), (140, 1), (150, 0)):
        mill.feed([an_event(second + n, "a", second) for n in range(fed)])
        mill.run(clock=NOW + timedelta(seconds=second))
    rows, due = sums(mill), mill.project.ledger("firings").view().position.due
    assert (rows, due) == ([0, 150], {"firings": (200 + int(NOW.timestamp())) * 1_000_000})
    for wanted in (ALL, since(2)):
        done(backfill(an_amendment(mill), wanted))
        assert (sums(mill), mill.project.ledger("firings").view().position.due) == (rows, due)
    mill.run(clock=NOW + timedelta(seconds=200))
    assert sums(mill) == [0, 140, 150]


def test_a_dry_run_says_that_live_batches_wait_and_which_firings_change(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, 1, 2, 3, 4, 5)
    offsets = ("--from-offsets", "events-0:3", "--to-offsets", "events-0:4")
    told = type_command(tmp_path, "backfill", "firings", *offsets, "--dry-run")
    assert told.code == 0, told
    assert "asked     for 1 record; whole batches are read again, which makes 2" in told.out
    assert "in        1 batch" in told.out
    assert "live ones wait for it" in told.out
    assert "firings   of firings from batch 4 up to the last one are computed again" in told.out
    assert sums(mill) == [6]
