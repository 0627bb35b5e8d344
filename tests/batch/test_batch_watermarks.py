"""Watermarks that records tell, and both times of a record, on Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.commands import type_command
from support.projects import EVENTS_CONTRACT, NOW, Mill, a_project, an_event, rows_of
from tidemill.core.errors import DeclarationError
from tidemill.inspect.recent_batches import RecentBatches
from tidemill.run.batch import NothingToDo

pytestmark = pytest.mark.spark

TABLE = """
apiVersion: v3.1.0
kind: DataContract
id: NAME
version: 1.0.0
status: active
schema:
  - name: NAME
    logicalType: object
    properties:
      - {name: window_start, logicalType: timestamp, required: true}
      - {name: window_end, logicalType: timestamp, required: true}
      - {name: n, logicalType: integer, required: true}
      - {name: amount, logicalType: integer}
"""

TOLD = """
from tidemill import Count, Pipeline, Sum, Tumbling

with Pipeline("told", every="1 minute", idle_timeout=None) as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts", watermark="WATERMARK")
    events = events.filter("coalesce(user, '') != 'marker'")
    events.window(Tumbling("10 seconds")).aggregate(n=Count(), amount=Sum("amount")).publish("told", contract="told")
"""
MARKER = "CASE WHEN user = 'marker' THEN ts END"

BOTH_TIMES = """
from tidemill import Count, Pipeline, Sum, TimePolicy, Tumbling, TumblingBuffer

with Pipeline("told", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    for name, window in (
        ("told", Tumbling("10 seconds")),
        ("arrived", TumblingBuffer(TimePolicy("10 seconds", clock="batch_clock"))),
    ):
        events.window(window).aggregate(n=Count(), amount=Sum("amount")).publish(name, contract=name)
"""


def a_mill(folder: Path, spark: Any, pipeline: str, *tables: str, partitions: int = 1) -> Mill:
    contracts = {name: TABLE.replace("NAME", name) for name in ("told", *tables)}
    project = a_project(folder, pipeline, {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), **contracts})
    mill = Mill(project, spark, "told")
    mill.log.create_topic("events", partitions=partitions)
    return mill


def told(folder: Path, spark: Any, watermark: str = MARKER, *, partitions: int = 1) -> Mill:
    return a_mill(folder, spark, TOLD.replace("WATERMARK", watermark), partitions=partitions)


def windows(mill: Mill, table: str = "told") -> Mapping[float, tuple[int, int | None]]:
    """(count, sum) by the second at which a window starts."""
    found = rows_of(mill.project.published_uri(table))
    return {(r["window_start"] - NOW).total_seconds(): (r["n"], r["amount"]) for r in found}


def watermark(mill: Mill) -> int:
    """In seconds after the begin."""
    return mill.project.ledger("told").view().position.watermark // 1_000_000 - int(NOW.timestamp())


def test_row_42_a_marker_in_the_data_sets_the_watermark_and_nothing_else_does(tmp_path: Path, spark: Any) -> None:
    mill = told(tmp_path, spark)
    mill.feed([an_event(5, amount=5), an_event(500, amount=7), an_event(20, "marker")])
    mill.run()
    assert (windows(mill), watermark(mill)) == ({0: (1, 5)}, 20)
    mill.feed([an_event(19, amount=19), an_event(21, amount=21)])
    mill.run()
    [late] = mill.own("late")
    assert (late["offset"], late["window_start"]) == (3, NOW + timedelta(seconds=10))
    assert (windows(mill), watermark(mill)) == ({0: (1, 5)}, 20)
    mill.feed([an_event(30, "marker")])
    mill.run()
    assert windows(mill) == {0: (1, 5), 20: (1, 21)}


def test_the_slowest_partition_holds_back_markers_of_others_and_none_goes_back(tmp_path: Path, spark: Any) -> None:
    mill, seen = told(tmp_path, spark, partitions=2), []
    for partition, second in ((0, 20), (1, 10), (1, 5), (1, 40)):
        mill.feed([an_event(second, "marker")], partition=partition)
        mill.run()
        seen.append(watermark(mill))
    assert seen[1:] == [10, 10, 20]
    assert seen[0] < 0


def test_a_watermark_by_an_expression_is_that_of_a_delay(tmp_path: Path, spark: Any) -> None:
    mill = told(tmp_path, spark, "ts - INTERVAL 10 SECONDS")
    outcomes = []
    for seconds in (range(10, 16), [30], [10]):
        mill.feed(an_event(second) for second in seconds)
        mill.run()
        outcomes.append((windows(mill), watermark(mill)))
    assert outcomes == [({}, 5), ({10: (6, 6)}, 20), ({10: (6, 6)}, 20)]
    assert [row["offset"] for row in mill.own("late")] == [7]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("ts + INTERVAL 2000 DAYS", "future_watermark: watermark in the future"),
        (
            "ts - INTERVAL '2500' YEAR",
            "early_watermark: watermark too early: its windows would begin before year 1",
        ),
    ],
)
def test_a_record_that_tells_an_impossible_watermark_is_rejected_and_moves_nothing(
    tmp_path: Path, spark: Any, expression: str, reason: str
) -> None:
    mill = told(tmp_path, spark, f"CASE WHEN user = 'broken' THEN {expression} ELSE ts END")
    mill.feed([an_event(5), an_event(6, "broken"), b"no json", an_event(7)])
    commit = mill.run()
    assert watermark(mill) == 7
    rejected = mill.own("quarantine")
    assert [row["reasons"] for row in rejected if row["offset"] == 1] == [[reason]]
    assert len(rejected) == 2
    [account] = commit.accounts.values()
    assert (account.read, account.rejected, account.aggregated) == (4, 2, 2)


@pytest.mark.parametrize(
    "window", ['Session("10 seconds"), allowed_lateness="1 hour"', 'Tumbling("10 seconds"), allowed_lateness="1 day"']
)
def test_the_earliest_watermark_that_a_record_may_tell_stops_nothing(tmp_path: Path, spark: Any, window: str) -> None:
    told_first = "CASE WHEN user = 'marker' THEN ts ELSE TIMESTAMP '0001-01-02 00:00:00' END"
    text = TOLD.replace("WATERMARK", told_first).replace('Tumbling("10 seconds")', window)
    mill = a_mill(tmp_path, spark, text.replace("import Count, Pipeline", "import Count, Pipeline, Session"))
    for second in (5, 15):
        mill.feed([an_event(second)])
        mill.run()
    mill.feed([an_event(100_000, "marker")])
    mill.run()
    assert sum(row["n"] for row in mill.published()) + len(rejected(mill)) == 2


def rejected(mill: Mill) -> list[str]:
    return [reason for row in mill.own("quarantine") for reason in row["reasons"]]


def test_records_that_the_contract_rejects_tell_no_watermark(tmp_path: Path, spark: Any) -> None:
    mill = told(tmp_path, spark, "ts - make_dt_interval(0, 0, 0, 60 / (2000000 - amount))")
    mill.feed([an_event(100, amount=1), an_event(900, amount=2_000_000)])
    mill.run()
    assert (rejected(mill), watermark(mill)) == (["amount.maximum"], 99)


def test_status_says_what_each_partition_has_told(tmp_path: Path, spark: Any) -> None:
    mill = told(tmp_path, spark, partitions=2)
    mill.feed([an_event(20, "marker")])
    mill.feed([an_event(10)], partition=1)
    mill.run()
    one, other = (type_command(mill.project.folder, "status", "told", *more) for more in ((), ("--json",)))
    assert "watermark told: 2026-01-01 00:00:20" in one.out
    assert "no watermark told yet" in one.out
    partitions = json.loads(other.out)["partitions"]
    assert [p["told_watermark"] for p in partitions] == ["2026-01-01T00:00:20+00:00", None]


def test_a_watermark_that_only_spark_refuses_is_named_with_its_line(tmp_path: Path, spark: Any) -> None:
    for expression in ("ts + INTERVAL 9999999999 DAYS", "from_json(user, 'ts STRING').ts"):
        mill = told(tmp_path / str(len(expression)), spark, expression)
        mill.feed([an_event(1)])
        with pytest.raises(DeclarationError, match=r"`read_1` \(.*pipeline.py:5\)"):
            mill.run()


def test_a_batch_that_is_done_again_has_the_watermark_of_its_markers(tmp_path: Path, spark: Any) -> None:
    mill = told(tmp_path, spark)
    for second in (5, 15):
        mill.feed([an_event(second, amount=second), an_event(second + 5, "marker")])
        mill.run()
    assert isinstance(mill.run(), NothingToDo)
    assert (windows(mill), watermark(mill)) == ({0: (1, 5), 10: (1, 15)}, 20)


def test_row_36_a_record_has_a_time_of_its_own_and_one_of_its_batch(tmp_path: Path, spark: Any) -> None:
    mill = a_mill(tmp_path, spark, BOTH_TIMES, "arrived")
    mill.feed([an_event(100, amount=1)])
    mill.run(clock=NOW + timedelta(seconds=160))
    _, [batch] = RecentBatches(mill.project.ledger("told")).look(1)
    assert batch.newest_event is not None
    assert micros_behind(batch.newest_event, 160) == 60 * 1_000_000
    mill.feed([an_event(110, amount=2)])
    mill.run(clock=NOW + timedelta(seconds=170))
    assert windows(mill, "told") == {100: (1, 1)}
    assert windows(mill, "arrived") == {160: (1, 1)}


def micros_behind(event: int, clock: int) -> int:
    """How far an event is behind a clock, in microseconds."""
    return (int(NOW.timestamp()) + clock) * 1_000_000 - event
