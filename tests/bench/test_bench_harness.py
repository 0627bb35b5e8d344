"""The bench's own arithmetic: records, medians, ratios, aims."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from bench import machine, memory, picture, report, suite
from bench.aims import of_sizes
from bench.bench_sliding import Times
from bench.by_pipeline import by_pipeline
from bench.feed import Feed
from bench.measured import AROUND, EARLY, LATE, Series, Steady
from bench.records import EVENT_TIME_PER_BATCH, OUT_OF_ORDER, START, Traffic


@pytest.mark.parametrize("words", [["--only", "duckdb,tidemil"], ["--pipelines", "page_view"]], ids=" ".join)
def test_names_that_nobody_has_are_refused_before_anything_starts(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        suite.main(words)
    assert ended.value.code == 2
    assert "is none of" in capsys.readouterr().err


def rows_of(size: int, index: int) -> list[dict[str, Any]]:
    return [json.loads(value) for value in Traffic(size=size).batch(index)["value"].to_pylist()]


def a_series(size: int = 1_000, **seconds: list[float]) -> Series:
    return Series(size=size, seconds=seconds, cpu_seconds={}, settled=10, differing={})


def a_steady(*, batches: int = LATE + AROUND, late: float = 0.5) -> Steady:
    seconds = [0.5 if number < 1_000 else late for number in range(batches)]
    return Steady(seconds=seconds, bare=[(EARLY, 0.2), (EARLY + 1, 0.4), (LATE, 0.3)])


def found(aims: list[report.Aim], what: str) -> report.Aim:
    return next(aim for aim in aims if what in aim.what)


def test_records_a_second_are_told_of_each_log() -> None:
    series = a_series(size=1_000, **{"tidemill": [0.5, 0.4, 0.6], "tidemill on kafka": [1.0]})
    assert report.rates(series) == {"file log": 2_000, "kafka": 1_000}
    assert report.rates(a_series(tidemill=[0.5])) == {"file log": 2_000}


def test_same_batch_of_traffic_is_the_same_records_in_any_order_of_asking() -> None:
    traffic = Traffic(size=500)
    third = traffic.batch(2)
    traffic.batch(0)
    assert traffic.batch(2).equals(third)
    assert not traffic.batch(1).equals(third)


def test_records_have_about_a_hundred_bytes() -> None:
    values = Traffic(size=10_000).batch(0)["value"].to_pylist()
    assert 90 <= sum(map(len, values)) / len(values) <= 110


def test_event_time_advances_a_minute_a_batch_and_is_out_of_order_by_less_than_the_bound() -> None:
    newest = None
    for index in range(3):
        times = [datetime.fromisoformat(row["ts"]) for row in rows_of(2_000, index)]
        begin = START + index * EVENT_TIME_PER_BATCH
        assert begin - OUT_OF_ORDER <= min(times) <= max(times) < begin + EVENT_TIME_PER_BATCH
        backwards = [earlier - later for earlier, later in itertools.pairwise(times)]
        assert timedelta(0) < max(backwards) <= OUT_OF_ORDER
        assert newest is None or newest < max(times)
        newest = max(times)


def test_first_batch_covers_the_time_before_as_well() -> None:
    traffic = Traffic(size=60, before=timedelta(hours=1))
    first, second = (
        [datetime.fromisoformat(json.loads(value)["ts"]) for value in traffic.batch(index)["value"].to_pylist()]
        for index in range(2)
    )
    assert len(first) == 60 * 61
    assert Counter((time - START) // timedelta(minutes=30) for time in first)[-1] in range(60 * 29, 60 * 31)
    assert START - timedelta(hours=1, seconds=5) <= min(first) < START - timedelta(minutes=59)
    assert START < max(first) < START + EVENT_TIME_PER_BATCH
    assert min(second) >= START + EVENT_TIME_PER_BATCH - OUT_OF_ORDER


def test_few_of_five_thousand_users_make_most_of_the_traffic() -> None:
    users = Counter(Traffic(size=200_000).batch(0)["key"].to_pylist())
    assert 4_900 <= len(users) <= 5_000
    assert sum(n for _, n in users.most_common(50)) > 0.4 * 200_000


def test_key_of_a_record_is_its_user() -> None:
    batch = Traffic(size=100).batch(0)
    users = [json.loads(value)["user"].encode() for value in batch["value"].to_pylist()]
    assert batch["key"].to_pylist() == users


def test_processor_time_counts_the_work_of_children() -> None:
    before = machine.cpu_seconds()
    if before is None:
        pytest.skip("this system has no /proc")
    subprocess.run([sys.executable, "-c", "sum(range(5_000_000))"], check=True)
    after = machine.cpu_seconds()
    assert after is not None
    assert after > before


def test_delivery_is_exactly_the_files_of_its_round(tmp_path: Path) -> None:
    feed = Feed(tmp_path / "log", Traffic(size=101))
    first, second = feed.deliver(), feed.deliver()
    assert (first.index, first.records, second.index, second.records) == (0, 101, 1, 101)
    assert first.files
    assert not set(first.files) & set(second.files)
    assert all(Path(name).is_file() for name in (*first.files, *second.files))


def test_faster_state_store_counts_and_an_untuned_one_never_does() -> None:
    series = a_series(available_now_hdfs=[2.0, 4.0], available_now_rocksdb=[2.5], available_now_hdfs_stock=[1.0])
    assert report.figures(series).rival == "available_now_rocksdb"
    assert report.figures(series).available_now == 2.5


def test_ratios_say_how_many_times_faster_the_product_is() -> None:
    of = report.figures(a_series(tidemill=[0.4, 0.6, 0.5], available_now_hdfs=[2.0], floor=[0.25]))
    assert (of.vs_available_now, of.vs_floor) == (4.0, 0.5)


@pytest.mark.parametrize(
    ("size", "ours", "what", "met"),
    [
        (1_000, 0.3, "1,000 records: seconds", True),
        (1_000, 0.31, "1,000 records: seconds", False),
        (1_000, 0.25, "1,000 records: times faster than AvailableNow", True),
        (10_000, 0.26, "10,000 records: times faster than AvailableNow", False),
        (100_000, 0.33, "100,000 records: times faster than AvailableNow", True),
        (100_000, 0.34, "100,000 records: times faster than AvailableNow", False),
        (10_000, 0.25, "10,000 records: times faster than the tuned one", True),
        (10_000, 0.26, "10,000 records: times faster than the tuned one", False),
        (1_000_000, 1.25, "1,000,000 records: records a second", True),
        (1_000_000, 1.26, "1,000,000 records: records a second", False),
        (1_000_000, 1.0, "1,000,000 records: times the rate of Flink SQL", True),
        (1_000_000, 1.1, "1,000,000 records: times the rate of Flink SQL", False),
        (1_000_000, 2.0, "1,000,000 records: share of DuckDB's rate", True),
        (1_000_000, 2.1, "1,000,000 records: share of DuckDB's rate", False),
        (1_000_000, 1.2, "1,000,000 records: on Kafka", True),
        (1_000_000, 1.1, "1,000,000 records: on Kafka", False),
    ],
)
def test_aim_is_met_up_to_its_bound(size: int, ours: float, what: str, *, met: bool) -> None:
    rivals = {"available_now_hdfs": [2.0], "available_now_hdfs_tuned": [1.0], "flink": [1.5], "duckdb": [0.5]}
    series = a_series(size, tidemill=[ours], **rivals, **{report.ON_KAFKA: [2.0]})
    assert found(of_sizes([report.figures(series)], None), what).met is met


def test_rivals_that_were_not_measured_meet_and_miss_nothing() -> None:
    aims = of_sizes([report.figures(a_series(1_000_000, tidemill=[0.5]))], None)
    assert [aim.met for aim in aims if aim.found is None] == [None] * 6


@pytest.mark.parametrize(("late", "met"), [(0.525, True), (0.53, False)])
def test_last_hundred_may_take_a_twentieth_longer_than_the_second(late: float, *, met: bool) -> None:
    assert found(of_sizes([], a_steady(late=late)), "2,000 batches").met is met


def test_batch_that_was_not_reached_meets_and_misses_nothing() -> None:
    short = a_steady(batches=LATE - 1)
    assert short.around(LATE) is None
    assert found(of_sizes([], short), "2,000 batches").met is None


def test_batch_stands_for_the_median_around_it() -> None:
    steady = Steady(seconds=[float(n) for n in range(1, 200)], bare=[])
    assert steady.around(100) == 100.0
    assert steady.hundreds == [50.5]


def test_written_figures_have_the_promised_keys(tmp_path: Path) -> None:
    series = a_series(tidemill=[0.4444444], available_now_hdfs=[2.0], floor=[0.25])
    path = tmp_path / "build" / "bench.json"
    report.write(path, report.as_json([series], a_steady(), {}, {"machine": {"cores": 2}}))
    content = json.loads(path.read_text())
    size, steady = content["sizes"]["1000"], content["steady"]
    assert (size["tidemill_s"], size["available_now_s"], size["floor_s"]) == (0.444, 2.0, 0.25)
    assert (size["vs_available_now"], size["vs_floor"]) == (4.5, 0.563)
    assert size["rounds_s"]["floor"] == [0.25]
    assert (steady["batch_100_s"], steady["batch_2000_s"], steady["ratio"]) == (0.5, 0.5, 1.0)
    assert steady["floor_at_100_s"] == pytest.approx(0.3)
    assert content["machine"] == {"cores": 2}
    assert [path.name for path in path.parent.iterdir()] == ["bench.json"]


@pytest.mark.parametrize(("seconds", "met"), [(0.7, True), (0.71, False)])
def test_aim_of_the_reference_pipeline_is_about_20_000_lines(seconds: float, *, met: bool) -> None:
    more = {"page_views": [a_series(10_000, tidemill=[0.1]), a_series(20_000, tidemill=[seconds])]}
    assert found(report.aims([], None, more), "page_views, 20,000 lines").met is met


@pytest.mark.parametrize(("seconds", "met"), [(8.0, True), (8.1, False)])
def test_aim_of_a_first_batch_is_about_a_command_with_1_000_records(seconds: float, *, met: bool) -> None:
    rounds = {1_000: [seconds, 1.0, 1.0], 10_000: [9.0]}
    commands = [a_series(size, **{"tidemill cold": taken}) for size, taken in rounds.items()]
    assert found(report.aims([], None, {report.COLD: commands}), "first batch").met is met


def test_figures_of_each_pipeline_have_one_form_and_only_what_was_measured() -> None:
    seconds = {"tidemill": [0.4], "duckdb": [0.1], "available_now_hdfs": [2.0], "tidemill on kafka": [0.5]}
    bench = replace(a_series(**seconds), peak_mb={"tidemill": {"driver": 900, "workers": 80}, "duckdb": {}})
    found = by_pipeline([bench], {"wide": [a_series(10_000, tidemill=[0.3, 0.5, 0.4])]})
    compared = {"rows_compared": 10, "rows_differing": {}}
    assert found["bench"]["sizes"]["1000"] == {
        "tidemill_s": 0.4,
        "duckdb_s": 0.1,
        "available_now_s": 2.0,
        "driver_peak_mb": 900,
        "workers_peak_mb": 80,
        "peak_mb": {"tidemill": {"driver": 900, "workers": 80}},
        **compared,
    }
    assert found["wide"] == {"sizes": {"10000": {"tidemill_s": 0.4, "peak_mb": {}, **compared}}}
    assert found["kafka"]["sizes"]["1000"]["tidemill_s"] == 0.5


def test_commands_are_told_beside_each_other_and_not_beside_warm_batches() -> None:
    found = by_pipeline([], {"cold": [a_series(**{"tidemill cold": [2.0], "declarative": [50.0, 60.0]})]})
    assert found["bench"] == {"sizes": {}}
    of = found["cold"]["sizes"]["1000"]
    assert (of["tidemill_cold_s"], of["declarative_s"]) == (2.0, 55.0)


def test_picture_has_a_line_for_whoever_was_measured_and_is_the_same_for_the_same_figures() -> None:
    sizes = {"10000": {"tidemill_s": 0.3, "flink_s": 2.0}, "1000": {"tidemill_s": 0.2, "duckdb_s": 0.03}}
    svg = picture.drawn(sizes)
    root = ElementTree.fromstring(svg)
    names = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [name for name in names if name in ("Tidemill", "DuckDB query", "bare Spark job")] == [
        "Tidemill",
        "DuckDB query",
    ]
    assert svg.count("<circle") == 4
    assert picture.drawn(dict(reversed(sizes.items()))) == svg
    with pytest.raises(ValueError, match="no figures"):
        picture.drawn({})


def test_each_pipeline_of_two_sizes_is_drawn_beside_its_figures(tmp_path: Path) -> None:
    sizes = {"1000": {"tidemill_s": 0.2}, "10000": {"tidemill_s": 0.3}}
    others = {"1000": {"rows_compared": 1}, "10000": {"rows_compared": 1}}
    pipelines = {"bench": {"sizes": sizes}, "wide": {"sizes": sizes}, "sliding": {"sizes": {"1000": sizes["1000"]}}}
    pipelines["stock"] = {"sizes": others}
    written = picture.beside(tmp_path / "figures.json", pipelines)
    assert [path.name for path in written] == ["figures.svg", "figures_wide.svg"]
    assert written[0].read_text() == picture.drawn(sizes)


def test_peak_of_memory_begins_anew_when_it_is_forgotten() -> None:
    if not memory.peaks_mb():
        pytest.skip("this system has no /proc")
    held = b"x" * 200 * 2**20
    high = memory.peaks_mb()["driver"]
    del held
    memory.forget_peaks()
    assert memory.peaks_mb()["driver"] <= high - 150


def test_report_shows_medians_and_aims_of_a_run_without_the_product() -> None:
    console = Console(width=120)
    with console.capture() as capture:
        report.show(
            console, [a_series(floor=[0.2], available_now_hdfs=[2.0, 3.0], available_now_rocksdb=[4.0])], None, {}
        )
    assert "2.50 (2.00-3.00)" in capture.get()
    assert "not measured" in capture.get()


def test_sliding_is_held_against_the_tumbling_batch_beside_it() -> None:
    # The machine is twice as busy in every other minute, and the last batches need a tenth more of the processor.
    busy = [1.0 + number % 2 for number in range(100)]
    work = [1.0] * 80 + [1.1] * 20
    times = Times(
        {"by_minute": busy, "by_hour": [1.4 * b for b in busy]},
        {"by_minute": [1.0] * 100, "by_hour": [1.2 * w for w in work]},
    )
    found = times.compared()
    assert (found["ratio"], found["cpu_ratio"], found["cpu_late_to_early"]) == (1.4, 1.32, 1.1)
    assert sorted(found["at"]) == ["100", "70"]
