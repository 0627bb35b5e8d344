"""Windows that records define, through the whole protocol on the tiny engine: cut, killed and rewound anywhere."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from machine.conftest import again
from machine.told import USERS, Told, disturbed, places_of
from support.commands import type_command
from support.firings import firings
from support.ordered import Batch, Record
from support.ordered_oracle import around_records
from support.projects import NO_SPARK, Mill, an_event
from support.projects import NOW as START
from support.short_forms import shortened
from tidemill.core.ordered.records import Moment
from tidemill.core.repair.selection import OfOffsets, OfWindows
from tidemill.core.time.times import micros
from tidemill.inspect.service_levels import service_levels
from tidemill.maintain import maintenance
from tidemill.repair.backfill import backfill

pytestmark = pytest.mark.usefixtures("tiny")

WINDOW, SIZE = "RecordWindows('10 s')", 10_000_000

Row = tuple[str, int, int, int, int]


@pytest.fixture(autouse=True)
def _maintained_early(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(maintenance, "AT_LEAST", 2)
    return


def a_pipeline(folder: Path, **more: Any) -> Mill:
    return firings(folder, NO_SPARK, WINDOW, bounds=True, collect=False, **more)


def shown(mill: Mill) -> list[Row]:
    """User, bounds, count and sum of each row."""
    rows = mill.published()
    bounds = [(micros(r["window_start"]) - micros(START), micros(r["window_end"]) - micros(START)) for r in rows]
    return sorted((r["user"], *both, r["n"], r["amount"]) for r, both in zip(rows, bounds, strict=True))


def expected(told: Told) -> list[Row]:
    """What the plain rule gives."""
    return sorted(row for user in USERS for row in _of(user, told))


def _of(user: str, told: Told) -> Iterator[Row]:
    amounts, batches, first = [each.amount for each in told.order if each.user == user], list[Batch](), 0
    for until, watermark in told.after:
        own = [each for each in told.order[first:until] if each.user == user]
        moment = Moment(watermark - micros(START))
        batches.append(Batch([Record(each.second * 1_000_000) for each in own], moment))
        first = until
    for window, numbers in around_records(SIZE, batches, Moment()):
        yield user, window.start, window.end, len(numbers), sum(amounts[n] for n in numbers)


@pytest.mark.parametrize("seed", shortened(range(8), range(2)))
def test_rows_are_those_of_the_plain_rule_whatever_is_done_to_the_batches(tmp_path: Path, seed: int) -> None:
    mill, draw = a_pipeline(tmp_path, partitions=2, delay="4 s"), random.Random(seed)
    places, told = places_of(mill), Told(mill, disorder=15)
    for _ in range(8):
        told.feed(draw)
        disturbed(told, draw, places, told.run)
        told.run()
        assert shown(mill) == expected(told)
    assert shown(mill)


def test_a_window_ends_with_each_record_and_one_starts_after_it(tmp_path: Path) -> None:
    mill = a_pipeline(tmp_path)
    mill.feed([an_event(100, amount=1), an_event(105, amount=2)])
    mill.run()
    mill.feed([an_event(120, amount=4)])
    mill.catch_up()
    assert shown(mill) == [
        ("a", 90_000_001, 100_000_001, 1, 1),
        ("a", 95_000_001, 105_000_001, 2, 3),
        ("a", 100_000_001, 110_000_001, 1, 2),
        ("a", 110_000_001, 120_000_001, 1, 4),
    ]


def test_a_record_that_no_open_window_could_hold_goes_to_the_late_table(tmp_path: Path) -> None:
    mill = a_pipeline(tmp_path)
    mill.feed([an_event(100)])
    mill.run()
    # The watermark is 100: a window that may end up to 110 is still open for a record at 90.000001, not for one at 90.
    mill.feed([an_event(90, amount=7), an_event(90.000001, amount=8)])
    mill.run()
    assert [row["value"] for row in mill.own("late")] == [an_event(90, amount=7)]
    mill.catch_up()
    mill.feed([an_event(300)])
    mill.catch_up()
    assert len(mill.own("late")) == 2, "the end of the log closes all windows"


def test_a_backfill_gives_the_windows_of_one_computation(tmp_path: Path) -> None:
    mill, draw = a_pipeline(tmp_path, partitions=2, delay="4 s"), random.Random("backfill")
    told = Told(mill, disorder=15)
    for _ in range(5):
        told.feed(draw)
        told.run()
    before = shown(mill)
    done(backfill(an_amendment(again(mill)), OfOffsets(since={}, until={})))
    assert shown(again(mill)) == before == expected(told)


@pytest.mark.parametrize(
    ("window", "trigger", "start", "n"),
    [(WINDOW, "", 102.000001, 2), ("Session('10 s')", "trigger=AfterWatermark()", 100, 3)],
)
def test_a_backfill_of_windows_reads_all_records_that_they_may_hold(
    tmp_path: Path, window: str, trigger: str, start: float, n: int
) -> None:
    mill = firings(tmp_path, NO_SPARK, window, bounds=True, collect=False, trigger=trigger)
    for second, amount in ((100, 1), (105, 2_000_000), (112, 1), (130, 1), (200, 1)):
        mill.feed([an_event(second, amount=amount)])
        mill.run()
    contract = tmp_path / "data_contracts" / "events.odcs.yaml"
    contract.write_text(contract.read_text().replace("maximum: 1000000", "maximum: 3000000"))
    since, until = (START + timedelta(seconds=second) for second in (106, 300))
    done(backfill(an_amendment(again(mill)), OfWindows(since=since, until=until)))
    counts = {row["window_start"]: row["n"] for row in again(mill).published()}
    assert counts[START + timedelta(seconds=start)] == n


def test_a_table_of_windows_that_wait_is_as_fresh_as_the_watermark(tmp_path: Path) -> None:
    mill = a_pipeline(tmp_path, delay="30 s")
    contract = tmp_path / "data_contracts" / "firings.odcs.yaml"
    contract.write_text(f"{contract.read_text()}slaProperties:\n  - {{property: freshness, value: 1, unit: min}}\n")
    mill = again(mill)
    mill.feed([an_event(100)])
    mill.run()
    [level] = service_levels(
        mill.project.pipeline("firings"), mill.project.ledger("firings").view(), START + timedelta(seconds=140)
    )
    assert level.measured == 70_000_000


def test_explain_says_what_they_are(tmp_path: Path) -> None:
    a_pipeline(tmp_path)
    told = type_command(tmp_path, "explain", "firings", "--json")
    assert "windows of 10 seconds that end with a record or start after one" in told.out, told


REFUSED: list[tuple[Callable[[Path], Mill], str]] = [
    (lambda f: a_pipeline(f, lateness="5 s"), "they fire once"),
    (lambda f: a_pipeline(f, trigger='trigger="on_update"'), "say themselves when they fire"),
    (lambda f: a_pipeline(f, trigger='accumulation="discarding"'), "fire by a rule of their own"),
    (lambda f: a_pipeline(f, trigger='timing="timing"'), "is on time"),
    (lambda f: firings(f, NO_SPARK, f"{WINDOW}, start=None", bounds=True), "not a name for a column: None"),
]


@pytest.mark.parametrize(("declare", "why"), REFUSED)
def test_what_does_not_go_with_them_is_refused(tmp_path: Path, declare: Callable[[Path], Mill], why: str) -> None:
    mill = declare(tmp_path)
    told = type_command(tmp_path, "explain", mill.name)
    assert told.code
    assert why in told.err + told.out
