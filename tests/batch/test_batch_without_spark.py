"""Small batches need no Spark: whatever their windows and their log, and also repairs and backfills."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from log.test_landing import a_mill as a_landing_mill
from log.test_landing import land
from support.projects import NO_SPARK, Mill, an_event, sums, totals
from tidemill.core.errors import SegmentDamaged
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import wanted
from tidemill.core.repair.side_outputs import Selection
from tidemill.engine.aggregate import native_runs
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


@pytest.mark.parametrize("window", WINDOWS)
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
