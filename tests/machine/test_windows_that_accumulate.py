"""Windows that accumulate keep a few rows of state, however often they have fired, and batches read only these."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from amend.conftest import an_amendment, done
from machine.failing import failing
from support.firings import changed, firings
from support.projects import NO_SPARK, NOW, Mill, an_event, sums
from support.short_forms import shortened
from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.shapes import is_of_firings
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.protocol.failpoints import Injected, boundaries_of
from tidemill.core.repair.selection import OfOffsets
from tidemill.engine.publish import firings as publishing
from tidemill.engine.publish import kept_pieces
from tidemill.engine.publish.ordered_state import Kept
from tidemill.inspect.state_size import state_sizes
from tidemill.maintain.maintenance import maintain
from tidemill.repair.backfill import backfill, preview
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.usefixtures("tiny", "early_maintenance")

ALL = OfOffsets(since={}, until={})
MINUTES = 26
USERS = ("a", "b")
MODES = ["accumulating", "accumulating_and_retracting", "accumulating_and_replacing"]
IN_TURN = ["Sliding('1 hour', '30 minutes')", "Session('1 hour')"]
FEW = len(USERS) * (1 + 2 * 5)
"""What two keys keep of up to 2 ** 5 firings: a row for themselves, and the nodes of two runs of pieces."""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of state each batch reads."""
    found = list[int]()

    def noted(tables: Sequence[tuple[FiringSink, Kept]]) -> bool:
        found.append(sum(kept.rows for _, kept in tables))
        return kept_pieces.is_outgrown(tables)

    monkeypatch.setattr(publishing, "is_outgrown", noted)
    return found


def totals(folder: Path, mode: str) -> Mill:
    told = f'trigger=Repeatedly(AfterProcessingTime("1 minute")), accumulation="{mode}", index="nth"'
    told += ', operation="operation"' if mode == "accumulating_and_retracting" else ""
    return firings(folder, NO_SPARK, "Global()", trigger=told, collect=False)


def minute(mill: Mill, number: int) -> None:
    for user in USERS:
        mill.feed([an_event(number, user, number)])
    mill.run(clock=NOW + timedelta(minutes=number))


def newest(mill: Mill) -> dict[str, tuple[int, int, int]]:
    rows = sorted((r for r in mill.published() if r.get("operation") != "delete"), key=lambda r: r["nth"])
    return {row["user"]: (row["nth"], row["n"], row["amount"]) for row in rows}


def after(minutes: int) -> dict[str, tuple[int, int, int]]:
    """A firing has the records of the minute that starts the delay, and of the one that ends it."""
    records = minutes // 2 * 2
    return dict.fromkeys(USERS, (records // 2 - 1, records, sum(range(records))))


@pytest.mark.parametrize("mode", shortened(MODES, MODES[:1]))
def test_totals_at_an_interval_keep_a_few_rows_for_each_key(tmp_path: Path, mode: str, read: list[int]) -> None:
    mill = totals(tmp_path, mode)
    for number in range(MINUTES):
        minute(mill, number)
    assert newest(mill) == after(MINUTES)
    assert max(read) <= 2 * FEW + kept_pieces.OUTGROWN + 8, read
    list(maintain(mill.project, "firings", keep=timedelta(0), now=datetime.now(UTC)))
    [size] = state_sizes(mill.project, mill.project.pipeline("firings"), mill.project.ledger("firings").view().position)
    assert size.rows <= 3 * FEW
    minute(mill, MINUTES)
    minute(mill, MINUTES + 1)
    assert newest(mill) == after(MINUTES + 2)
    done(backfill(an_amendment(mill), ALL))
    assert newest(mill) == after(MINUTES + 2)


@pytest.mark.parametrize("window", shortened(IN_TURN, IN_TURN[1:]))
def test_windows_of_a_key_that_take_records_in_turn_keep_a_few_rows_each(tmp_path: Path, window: str) -> None:
    told = 'trigger=Repeatedly(AfterCount(1)), accumulation="accumulating", index="nth"'
    mill = firings(tmp_path, NO_SPARK, window, trigger=told, collect=False, bounds=True, delay="1 day")
    for number in range(40):
        # Two sessions are far apart; of two sliding windows each has all records.
        mill.feed([an_event(600 + 40_000 * (number % 2 if "Session" in window else 0) + number, "a", number)])
        mill.run()
    found = {row["window_start"]: row["n"] for row in sorted(mill.published(), key=lambda row: row["nth"])}
    assert sorted(found.values()) == ([20, 20] if "Session" in window else [40, 40])
    list(maintain(mill.project, "firings", keep=timedelta(0), now=datetime.now(UTC)))
    [size] = state_sizes(mill.project, mill.project.pipeline("firings"), mill.project.ledger("firings").view().position)
    assert size.rows <= 3 * (1 + 2 * 2 * 6)


@pytest.mark.parametrize("mode", shortened(MODES, MODES[1:2]))
def test_one_can_go_back_to_before_state_was_written_anew(tmp_path: Path, mode: str) -> None:
    mill, since = totals(tmp_path, mode), dict[int, int | None]()
    for number in range(MINUTES):
        minute(mill, number)
        since[number + 1] = mill.project.ledger("firings").view().position.firings_from
    assert len(set(since.values())) > 2
    back = next(b for b in range(MINUTES, 0, -1) if since[b] != since[MINUTES]) - 5
    done(rewind(an_amendment(mill), back))
    assert mill.project.ledger("firings").view().position.firings_from == since[back]
    assert newest(mill) == after(back)
    for number in range(MINUTES, MINUTES + 3):
        mill.run(clock=NOW + timedelta(minutes=number))
    assert {row[1:] for row in newest(mill).values()} == {(MINUTES, sum(range(MINUTES)))}


def test_a_backfill_goes_on_from_what_keys_kept_before_it_was_written_anew(tmp_path: Path) -> None:
    mill = totals(tmp_path, "accumulating")
    for number in range(MINUTES):
        minute(mill, number)
    there = sorted(mill.published(), key=str)
    wanted = OfOffsets(since={TopicPartition("events", 0): 20}, until={TopicPartition("events", 0): 22})
    assert preview(an_amendment(mill), wanted).replaying.replay.since == 11
    done(backfill(an_amendment(mill), wanted))
    assert sorted(mill.published(), key=str) == there
    minute(mill, MINUTES)
    list(maintain(mill.project, "firings", keep=timedelta(0), now=datetime.now(UTC)))
    found = preview(an_amendment(mill), wanted).replaying
    assert (found.replay.since, "maintenance has removed" in found.why) == (1, True)


@pytest.mark.parametrize(
    ("window", "trigger"),
    [
        ('TumblingBuffer(CountPolicy(2), idle_timeout="1 hour")', ""),
        ("SlidingBuffer(CountPolicy(2))", ""),
        ('RecordWindows("10 s")', ""),
        ('Session("10 s")', 'trigger=Repeatedly(AfterCount(1)), accumulation="discarding"'),
    ],
)
def test_the_shape_of_a_table_tells_that_it_is_of_firings(tmp_path: Path, window: str, trigger: str) -> None:
    bounds = not window.startswith(("Tumbling", "Sliding"))
    mill = firings(tmp_path, NO_SPARK, window, trigger=trigger, collect=False, bounds=bounds)
    assert [is_of_firings(sink.shape) for sink in mill.project.pipeline("firings").sinks] == [True]
    others = sums(tmp_path / "sums", NO_SPARK).project.pipeline("sums").sinks
    assert [is_of_firings(sink.shape) for sink in others] == [False]


READ = 'pipeline.read("events", contract="events", event_time="ts", delay="0 s")'
OTHERS = """
    (
        events.filter("user != 'x'").key_by("user").window(TumblingBuffer(CountPolicy(7)))
        .aggregate(n=Count(), amount=Sum("amount")).publish("others", contract="others")
    )
"""


def of_two_tables(folder: Path, others: str) -> Mill:
    """A pipeline that publishes buffers of three records, and the table that `others` declares."""
    mill = firings(folder, NO_SPARK, "TumblingBuffer(CountPolicy(3))", collect=False)
    contract = (folder / "data_contracts" / "firings.odcs.yaml").read_text().replace("firings", "others")
    (folder / "data_contracts" / "others.odcs.yaml").write_text(contract)
    changed(mill, READ, "events")
    return changed(mill, "as pipeline:\n", f"as pipeline:\n    events = {READ}\n{others}")


def test_a_table_that_has_no_state_yet_does_not_mind(tmp_path: Path) -> None:
    mill = of_two_tables(tmp_path, OTHERS.replace("'x'", "'a'"))
    for second in range(14):
        mill.feed([an_event(second, "a", 1)] if second % 2 else [])
        mill.run()
    assert mill.project.ledger("firings").view().position.firings_from is not None
    assert [row["n"] for row in mill.published("firings")] == [3, 3]


@pytest.mark.parametrize("left_out", [True, False])
def test_state_is_not_written_anew_while_a_table_of_firings_is_left_out(tmp_path: Path, left_out: bool) -> None:
    mill = of_two_tables(tmp_path, OTHERS)
    mill.feed([an_event(0, "a", 1)])
    mill.run()
    if left_out:
        mill = changed(mill, OTHERS, "")
    for second in range(1, 14):
        mill.feed([an_event(second, "a", 1)])
        mill.run()
    assert (mill.project.ledger("firings").view().position.firings_from is None) == left_out
    assert [row["n"] for row in mill.published("firings")] == [3, 3, 3, 3]
    if not left_out:
        assert [row["n"] for row in mill.published("others")] == [7, 7]


@pytest.mark.parametrize("side", shortened(["before", "after"], ["after"]))
def test_a_batch_that_fails_while_it_writes_state_anew_changes_nothing(tmp_path: Path, side: str) -> None:
    mill = totals(tmp_path, "accumulating_and_retracting")
    places = [each.name for each in boundaries_of(mill.project.pipeline("firings"))]
    for number in range(MINUTES):
        with failing(f"{side}:{places[number % len(places)]}=raise"), suppress(Injected):
            minute(mill, number)
        mill.run(clock=NOW + timedelta(minutes=number))
    assert newest(mill) == after(MINUTES)
    inserted = [row["amount"] for row in mill.published() if row["operation"] == "insert"]
    deleted = [row["amount"] for row in mill.published() if row["operation"] == "delete"]
    assert sum(inserted) - sum(deleted) == len(USERS) * sum(range(MINUTES))
