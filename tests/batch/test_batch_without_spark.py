"""Small batches need no Spark: whatever their windows and their log, and also repairs and backfills."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from log.test_landing import a_mill as a_landing_mill
from log.test_landing import land
from support.firings import firings
from support.projects import (
    EVENTS_CONTRACT,
    NO_SPARK,
    NOW,
    SUMS_CONTRACT,
    Mill,
    a_project,
    an_event,
    rows_of,
    sorted_rows,
    sums,
    totals,
)
from support.short_forms import shortened
from tidemill.cli.views.physical import aggregated
from tidemill.core.errors import SegmentDamaged
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import wanted
from tidemill.core.repair.side_outputs import Selection
from tidemill.engine.aggregate import native_runs
from tidemill.engine.aggregate.native_plan import left_to_spark_sql
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair

pytestmark = pytest.mark.spark

WINDOWS = ('Tumbling("10 seconds")', 'Sliding("80 seconds", "10 seconds")', 'Session("5 seconds")')


def alone(mill: Mill) -> Mill:
    """The same mill where Spark cannot be used."""
    return replace(mill, session=NO_SPARK)


def feed(mill: Mill, begin: int) -> None:
    """Records that count, a late one, one that is filtered, and broken ones."""
    mill.feed([an_event(begin + n, user="ab"[n % 2]) for n in range(30)])
    mill.feed([an_event(begin - 3_000, user="late"), an_event(begin, user="nobody"), b"broken", b'{"ts": 1}', None])


def two_batches(folder: Path, spark: Any, window: str, **settings: Any) -> Mill:
    """A mill that has executed a batch; the next one has records."""
    mill = sums(folder, spark, window=window, **settings)
    feed(mill, 0)
    mill.run()
    feed(mill, 100)
    return mill


TOLD = 'operation="operation", index="nth", timing="timing", last="last"'
EARLY = "trigger=AfterWatermark(early=AfterCount(1), late=AfterCount(1)), accumulation="
FIRINGS = {
    "TumblingBuffer(CountPolicy(3))": "",
    "TumblingBuffer(CountPolicy(3), idle_timeout='61 s')": "",
    "TumblingBuffer(CountPolicy(3), most_keys=1)": "",
    "SlidingBuffer(CountPolicy(4), CountPolicy(2))": "",
    "TumblingBuffer(PunctuationPolicy('marker'))": "",
    "SlidingBuffer(CountPolicy(3), order='event_time')": "",
    'TumblingBuffer(TimePolicy("10 s"))': "",
    'Tumbling("10 s")': f'{EARLY}"accumulating_and_retracting", {TOLD}',
    'Sliding("20 s", "10 s")': f'{EARLY}"accumulating", {TOLD}',
    'Tumbling("20 s")': f'{EARLY}"discarding", {TOLD}',
    'RecordWindows("10 s")': "",
    "Global()": 'trigger=Repeatedly(AfterCount(3)), accumulation="accumulating_and_replacing"',
    'Tumbling("1 hour")': 'trigger=Repeatedly(AfterCount(3)), accumulation="discarding"',
}
"""Ordered windows, and their triggers."""
SHORT = ('Tumbling("10 s")',)


@pytest.mark.parametrize("window", shortened(FIRINGS, SHORT))
def test_firings_are_folded_alone(tmp_path: Path, spark: Any, window: str) -> None:
    made, bounds = [], not any(kind in window for kind in ("CountPolicy", "marker", "Global"))
    for way, settings in (("here", {}), ("there", {"aggregate": "spark"})):
        mill = firings(
            *(tmp_path / way, spark, window),
            trigger=FIRINGS[window],
            bounds=bounds,
            collect=False,
            lateness="20 s" if FIRINGS[window] and bounds else "0 s",
            **settings,
        )
        mill.feed([an_event(1)])
        mill.run(clock=NOW)
        made.append(alone(mill) if way == "here" else mill)
    here, there = made
    for begin in (0, 12, 24):
        for mill in made:
            mill.feed([an_event(begin + n, user="ab"[n % 2], amount=(n % 5) - 1) for n in range(15)])
            mill.feed(
                [
                    an_event(begin - 3, user="c" if begin != 12 else "d"),
                    an_event(begin - 90),
                    an_event(0, user="nobody"),
                    b"{",
                    None,
                ]
            )
            mill.run(clock=NOW + timedelta(seconds=begin * 10 + 60))
    for mill in made:
        mill.run(drain=True)
        mill.feed([an_event(100, user="a")])
        mill.run(clock=NOW + timedelta(hours=1))
    assert here.everything() == there.everything()
    assert len(here.published()) > 3
    assert sorted_rows(state(here)) == sorted_rows(state(there))
    for mill in made:
        done(backfill(an_amendment(mill), wanted(from_offsets="events-0:1", to_offsets="events-0:20")))
    assert here.everything() == there.everything()
    assert sorted_rows(state(here)) == sorted_rows(state(there))


def state(mill: Mill) -> list[dict[str, Any]]:
    """The rows of state of a table of firings."""
    return rows_of(mill.project.table_uri(mill.name, "state", mill.name))


MIXED = """
from tidemill import *

with Pipeline("sums", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts").filter("coalesce(user, '') != 'nobody'")
    events.key_by("user").window(Tumbling("10 seconds")).aggregate(n=Count(), amount=Sum("amount")).publish(
        "sums", contract="sums"
    )
    others = pipeline.read("others", contract="events", event_time="ts")
    (
        others.union(events)
        .key_by("user")
        .window(TumblingBuffer(CountPolicy(3)))
        .aggregate(n=Count(), amount=Sum("amount"))
        .publish("triples", contract="triples")
    )
    (
        events.union(events.filter("amount > 1"))
        .with_columns(amount="amount * 2L", twice="amount")
        .select("user", "amount", "ts")
        .publish("copies", contract="copies")
    )
"""
COPIES = (
    SUMS_CONTRACT[: SUMS_CONTRACT.index("    properties")].replace("sums", "copies")
    + """\
    properties:
      - {name: user, logicalType: string}
      - {name: amount, logicalType: integer}
      - {name: ts, logicalType: timestamp}
"""
)


TRIPLES = "".join(line for line in SUMS_CONTRACT.splitlines(keepends=True) if "window_" not in line).replace(
    "primaryKey: true, primaryKeyPosition: 2, ", ""
)


def test_rows_are_published_alone(tmp_path: Path, spark: Any) -> None:
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "sums": SUMS_CONTRACT, "copies": COPIES}
    contracts["triples"] = TRIPLES.replace("sums", "triples")
    made = []
    for way, settings in (("here", {}), ("there", {"aggregate": "spark"})):
        mill = Mill(a_project(tmp_path / way, MIXED, contracts, **settings), spark, "sums")
        for topic in ("events", "others"):
            mill.log.create_topic(topic, partitions=1)
        feed(mill, 0)
        mill.run()
        made.append(alone(mill) if way == "here" else mill)
    here, there = made
    for mill in made:
        mill.feed([an_event(100 + n, user="ab"[n % 2], amount=n % 3) for n in range(9)])
        mill.feed([an_event(100 + n, user="abc"[n % 3], amount=10 * n) for n in range(9)], topic="others")
        mill.run()
        mill.feed([an_event(-3_000, user="late"), b"{"])
        mill.run()
        mill.feed([an_event(200, user="nobody")])
        assert mill.run().published.get("copies") == 0
    assert here.everything() == there.everything()
    assert len(here.published("copies")) == 44
    assert [row["n"] for row in here.published("triples")][:3] == [3, 3, 3]
    assert len(here.own("late")) == 1


SHARES = """
from tidemill import *

with Pipeline("sums", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    shares = events.with_columns(share="CAST(amount AS DOUBLE) / 8").key_by("user").window(Tumbling("10 s"))
    shares.aggregate(n=Count(), amount=Max("share"), last=Max("ts")).publish("sums", contract="sums")
"""
SHARED = (
    SUMS_CONTRACT.replace("amount, logicalType: integer", "amount, logicalType: number")
    + "      - {name: last, logicalType: timestamp}\n"
)


def test_late_records_with_doubles_and_times_are_put_aside_alone(tmp_path: Path, spark: Any) -> None:
    contracts, made = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "sums": SHARED}, []
    for way, settings in (("here", {}), ("there", {"aggregate": "spark"})):
        mill = Mill(a_project(tmp_path / way, SHARES, contracts, **settings), spark, "sums")
        mill.log.create_topic("events", partitions=1)
        mill.feed([an_event(100)])
        mill.run()
        mill = alone(mill) if way == "here" else mill
        mill.feed([an_event(-3_000.123456, user="late", amount=3), an_event(101)])
        mill.run()
        made.append(mill)
    here, there = made
    assert here.everything() == there.everything()
    [row] = here.own("late")
    assert json.loads(row["row"])["share"] == 0.375


UNITED = """
from tidemill import *

with Pipeline("sums", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    both = events.with_columns(user="1").union(events.with_columns(user="amount"))
    both.key_by("user").window(WINDOW).aggregate(n=Count()).publish("sums", contract="sums")
"""


@pytest.mark.parametrize("window", ['Tumbling("10 s")', 'Session("5 s")', "TumblingBuffer(CountPolicy(2))"])
def test_unions_of_columns_with_different_types_are_left_to_spark(tmp_path: Path, spark: Any, window: str) -> None:
    contract = SUMS_CONTRACT if "Buffer" not in window else TRIPLES
    contract = contract.replace("name: user, logicalType: string", "name: user, logicalType: integer")
    contract = "".join(line for line in contract.splitlines(keepends=True) if "name: amount" not in line)
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "sums": contract}
    project = a_project(tmp_path, UNITED.replace("WINDOW", window), contracts)
    assert "different types" in left_to_spark_sql(project.pipeline("sums"), here=True)
    mill = Mill(project, spark, "sums")
    mill.log.create_topic("events", partitions=1)
    mill.feed([an_event(1, amount=5_000_000_000 - 4_999_999_000), an_event(2, amount=1)])
    mill.run(drain=True)
    found = [(row["user"], row["n"]) for row in mill.published()]
    assert found == [(1, 2)] if "Buffer" in window else [(1, 3), (1_000, 1)]


def test_explain_says_what_needs_no_spark(tmp_path: Path, spark: Any) -> None:
    mill = firings(tmp_path, spark, "TumblingBuffer(CountPolicy(3))", collect=False)
    flow, settings = mill.project.pipeline("firings"), replace(mill.project.settings, driver_records=1_000_000)
    told = "DuckDB, in this process up to 1,000,000 records; Spark SQL beyond, because of "
    assert aggregated(flow, settings).startswith(told)
    assert aggregated(flow, replace(settings, driver_records=0)) == aggregated(flow, settings).replace(
        told, "Spark SQL, because of "
    )


@pytest.mark.parametrize("window", shortened(WINDOWS, WINDOWS[1:2]))
def test_batches_repairs_and_backfills_run_alone(tmp_path: Path, spark: Any, window: str) -> None:
    here = alone(two_batches(tmp_path / "here", spark, window))
    there = two_batches(tmp_path / "there", spark, window, aggregate="spark")
    for mill in (here, there):
        mill.run(drain=True)
    for mill in (here, there):
        done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    for mill in (here, there):
        done(backfill(an_amendment(mill), wanted(from_offsets="events-0:35", to_offsets="events-0:70")))
    assert here.everything() == there.everything()
    assert (len(here.own("quarantine")), here.own("late")) == (6, [])


def test_totals_so_far_are_merged_alone(tmp_path: Path, spark: Any) -> None:
    mill = totals(tmp_path, spark)
    feed(mill, 0)
    mill.run()
    feed(mill, 100)
    alone(mill).run()
    assert {row["user"]: row["n"] for row in mill.published()} == {"a": 30, "b": 30, "late": 2}


def test_files_of_kafka_connect_are_read_alone(tmp_path: Path, spark: Any) -> None:
    root = tmp_path / "landing"
    land(root, 0, [an_event(1), b"{cut"])
    mill = a_landing_mill(tmp_path / "mill", spark, f'path = "{root}"\nlayout = "kafka-connect"')
    mill.run()
    land(root, 2, [an_event(15), an_event(16)], packed=False)
    damaged = land(root, 4, [an_event(30)])
    packed = damaged.read_bytes()
    # Its last line can be counted when the batch is planned, and no longer when it is read.
    assert [alone(mill).run(limit=2).accounts["events"].aggregated for _ in range(1)] == [2]
    damaged.write_bytes(packed[:-4])
    with pytest.raises(SegmentDamaged, match="cannot be unpacked"):
        alone(mill).run()
    damaged.write_bytes(packed)
    alone(mill).catch_up()
    assert [row["n"] for row in mill.published()] == [1, 2, 1]
    assert [row["offset"] for row in mill.own("quarantine")] == [1]


@pytest.mark.parametrize(
    ("settings", "size"),
    [({"driver_records": 0}, 1), ({"driver_records": 30}, 1), ({}, 400), ({"aggregate": "spark"}, 1)],
)
def test_spark_starts_for_what_is_large(
    tmp_path: Path, spark: Any, settings: Any, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_runs, "_RECORD_BYTES", 0 if size > 1 else 1024)
    mill = two_batches(tmp_path, spark, WINDOWS[0], **settings)
    with pytest.raises(AttributeError, match="'object' object has no attribute"):
        alone(mill).run()
    assert mill.run().accounts["events"].read == 35
