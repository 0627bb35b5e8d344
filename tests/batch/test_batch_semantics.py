"""Windows, watermarks and lateness on the real engine."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.access import an_hourly_mill, hours_of
from support.projects import NOW, Mill, an_event, sums
from tidemill.core.time.times import micros, moment
from tidemill.run.batch import NothingToDo

pytestmark = pytest.mark.spark


def windows(mill: Mill) -> dict[tuple[float, str], tuple[int, int | None]]:
    """(start in seconds, user) to (count, sum)."""
    return {((r["window_start"] - NOW).total_seconds(), r["user"]): (r["n"], r["amount"]) for r in mill.published()}


@pytest.fixture
def hourly(tmp_path: Path, spark: Any, shared_data: Path) -> Mill:
    mill = an_hourly_mill(tmp_path, spark)
    mill.feed((shared_data / "apache_logs.log").read_bytes().splitlines(), topic="web.access")
    return mill


@pytest.mark.parametrize("batches", [1, 7, pytest.param(100, marks=pytest.mark.long)])
def test_an_access_log_gives_the_same_hours_however_it_is_cut(hourly: Mill, shared_data: Path, batches: int) -> None:
    commits = hourly.catch_up(limit=-(-10_000 // batches))
    assert len(commits) == batches
    expected = hours_of((shared_data / "apache_logs.log").read_bytes().splitlines())
    assert [row["requests"] for row in expected[:3]] == [74, 111, 115]
    assert len(expected) == 84
    assert hourly.published() == expected
    assert hourly.own("late") == hourly.own("quarantine") == []


def test_windows_close_when_the_watermark_passes_their_end_and_then_refuse_records(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, window='Tumbling("5 seconds")', delay="10 s")
    outcomes = []
    for seconds in (range(10, 16), [25], [10]):
        mill.feed(an_event(s) for s in seconds)
        mill.run()
        outcomes.append(windows(mill))
    assert outcomes == [{}, {(10, "a"): (5, 5)}, {(10, "a"): (5, 5)}]
    late = mill.own("late")
    assert [(r["offset"], r["table_name"], r["window_start"]) for r in late] == [
        (7, "sums", NOW + timedelta(seconds=10))
    ]


def test_a_window_closes_exactly_when_the_watermark_reaches_its_end(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1), an_event(9.999999)])
    mill.run()
    assert windows(mill) == {}
    mill.feed([an_event(10)])
    mill.run()
    assert windows(mill) == {(0, "a"): (2, 2)}


def test_allowed_late_records_publish_their_window_again_and_no_other(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, lateness="30 s")
    mill.feed([an_event(1), an_event(2, "b"), an_event(11), an_event(20)])
    first = mill.run()
    mill.feed([an_event(3, amount=5)])
    second = mill.run()
    assert windows(mill) == {(0, "a"): (2, 6), (0, "b"): (1, 1), (10, "a"): (1, 1)}
    assert (first.published["sums"], second.published["sums"]) == (3, 1)


def test_a_record_refused_by_some_sliding_windows_is_counted_in_the_others(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, window='Sliding("3 seconds", "1 second")')
    mill.feed([an_event(3)])
    mill.run()
    mill.feed([an_event(2.4), an_event(0.5)])
    commit = mill.run()
    account = commit.accounts["events"]
    assert (account.aggregated, account.late, commit.refused_windows) == (1, 1, 1)
    assert [(micros(NOW), micros(NOW), 1)] == [(s.first, s.last, s.records) for s in commit.missed["sums"]]
    assert [r["offset"] for r in mill.own("late")] == [2]
    mill.catch_up()
    assert {start: n for (start, _), (n, _) in windows(mill).items()} == {1: 2, 2: 2, 3: 1}


@pytest.mark.parametrize("cut", [1, 3, pytest.param(50, marks=pytest.mark.long)])
def test_sliding_windows_are_the_same_however_the_log_is_cut(tmp_path: Path, spark: Any, cut: int) -> None:
    mill = sums(tmp_path, spark, window='Sliding("12 seconds", "5 seconds")', delay="4 s")
    times = [(i * 7) % 40 / 2 + i for i in range(40)]
    times = sorted(times, key=lambda t: t + (t * 13) % 4)
    mill.feed(an_event(t) for t in times)
    mill.catch_up(limit=max(len(times) // cut, 1))
    expected: dict[tuple[float, str], int] = {}
    for t in times:
        for start in range(-15, 100, 5):
            if start <= t < start + 12:
                expected[start, "a"] = expected.get((start, "a"), 0) + 1
    assert {k: n for k, (n, _) in windows(mill).items()} == expected


def test_on_update_publishes_windows_before_they_close(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, trigger="on_update")
    mill.feed([an_event(1)])
    mill.run()
    assert windows(mill) == {(0, "a"): (1, 1)}
    mill.feed([an_event(2), an_event(3, "b")])
    mill.run()
    assert windows(mill) == {(0, "a"): (2, 2), (0, "b"): (1, 1)}


def test_events_before_1970_are_ordinary(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    before = b'{"ts": "1969-12-31T23:59:59Z", "user": "a", "amount": 1}'
    mill.feed([before, b'{"ts": "1960-02-29T00:00:00.000001Z", "user": "a", "amount": 1}'][::-1])
    mill.catch_up()
    assert [r["window_start"] for r in mill.published()] == [moment(-310_521_600_000_000), moment(-10_000_000)]


def test_a_record_from_the_far_future_is_rejected_and_does_not_move_the_watermark(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1), b'{"ts": "2999-01-01T00:00:00Z", "user": "a", "amount": 1}'])
    commit = mill.run()
    assert commit.position.watermark == round(NOW.timestamp() + 1) * 1_000_000
    assert commit.reasons == {"future": 1}


def test_every_partition_holds_the_watermark_back(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, partitions=2)
    start = NOW.timestamp()
    seen = []
    for events in ({0: 100, 1: 50}, {0: 200}, {1: 150}):
        for partition, second in events.items():
            mill.feed([an_event(second)], partition=partition)
        seen.append(mill.run().position.watermark / 1_000_000 - start)
    assert seen == [50, 50, 150]


def test_rejected_filtered_late_and_aggregated_records_balance(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1), an_event(2, "nobody"), b"{cut", an_event(3, amount=2_000_000), None, an_event(20, None)])
    mill.feed([an_event(4)])
    mill.run(limit=6)
    mill.catch_up()
    accounts = [
        e.event.accounts["events"] for e in mill.project.ledger("sums").entries() if hasattr(e.event, "accounts")
    ]
    total = accounts[0] + accounts[1]
    assert str(total) == "read=7 aggregated=2 filtered=1 rejected=3 late=1 shed=0"
    assert windows(mill) == {(0, "a"): (1, 1), (20, "unknown"): (1, 1)}
    quarantine = {r["offset"]: (r["reasons"], r["value"]) for r in mill.own("quarantine")}
    assert set(quarantine) == {2, 3, 4}
    assert quarantine[2][1] == b"{cut"
    assert quarantine[3][0] == ["amount.maximum"]


def test_a_broken_record_beside_a_late_one_is_not_lost(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(30)])
    mill.run()
    mill.feed([b"\xff\xfe", an_event(2)])
    account = mill.run().accounts["events"]
    assert (account.read, account.rejected, account.late) == (2, 1, 1)


def test_draining_closes_every_window_once(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, lateness="1 hour")
    mill.feed([an_event(1), an_event(100)])
    assert len(mill.catch_up(drain=True)) == 1
    assert windows(mill) == {(0, "a"): (1, 1), (100, "a"): (1, 1)}
    assert isinstance(mill.run(drain=True), NothingToDo)
