"""Which sliding windows missed records that later ones took: the same natively and on Spark, and after amendments."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from support.firings import firings
from support.projects import NO_SPARK, Mill, an_event, sums
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.time.missed import MOST
from tidemill.inspect.late_windows import late_windows
from tidemill.maintain.maintenance import maintain
from tidemill.repair.backfill import backfill

SLIDING = 'Sliding("300 seconds", "1 second")'
PLACE = TopicPartition("events", 0)
ALL = OfOffsets(since={}, until={})


def told(mill: Mill) -> dict[datetime, int]:
    """How many records each window missed."""
    rows = late_windows(an_amendment(mill), Selection()).to_pylist()
    return {row["window_start"]: row["partly_late"] for row in rows if row["partly_late"]}


def missed(folder: Path, spark: Any, seconds: list[int], **settings: Any) -> Any:
    """What a commit says of records that come so many seconds after the first of their windows has closed."""
    mill = sums(folder, spark, window=SLIDING, **settings)
    mill.feed([an_event(1000)])
    mill.run()
    mill.feed(an_event(1000 - second - 0.5) for second in seconds)
    return mill.run()


@pytest.mark.spark
def test_spark_tells_the_same(tmp_path: Path, spark: Any) -> None:
    draw = random.Random(1)
    seconds = [draw.randint(0, MOST - 1) for _ in range(500)]
    natively = missed(tmp_path / "native", NO_SPARK, seconds)
    on_spark = missed(tmp_path / "spark", spark, seconds, aggregate="spark")
    assert natively.missed == on_spark.missed
    assert len(natively.missed["sums"]) == len(set(seconds))
    assert sum(s.records for s in natively.missed["sums"][-1:]) == len(seconds)


@pytest.mark.spark
def test_nothing_is_told_of_a_record_that_more_windows_missed(tmp_path: Path, spark: Any) -> None:
    for name, session, how in (("native", NO_SPARK, {}), ("spark", spark, {"aggregate": "spark"})):
        commit = missed(tmp_path / name, session, [3, MOST], **how)
        assert (commit.missed, commit.refused_windows) == (None, 4 + MOST + 1)


def test_a_backfill_beside_forgotten_windows_tells_nothing_of_them(tmp_path: Path) -> None:
    mill = sums(tmp_path, NO_SPARK, window='Sliding("20 seconds", "5 seconds")', maintenance={"state": "10 s"})
    for second in range(0, 120, 20):
        mill.feed([an_event(second)])
        mill.run()
    list(maintain(mill.project, "sums", keep=timedelta(0), now=datetime.now(UTC)))
    before = mill.published()
    *_, last = backfill(an_amendment(mill), OfOffsets(since={PLACE: 4}, until={PLACE: 5}))
    assert (last.missed, told(mill), mill.published()) == (None, {}, before)


def test_firings_that_are_computed_again_miss_the_same_records(tmp_path: Path) -> None:
    sliding, trigger = 'Sliding("20 s", "5 s")', "trigger=AfterWatermark()"
    mill = firings(tmp_path, NO_SPARK, sliding, bounds=True, trigger=trigger, collect=False)
    mill.feed([an_event(40)])
    mill.run()
    mill.feed([an_event(31), an_event(32), an_event(38)])
    mill.run()
    before, rows = told(mill), mill.published()
    assert sum(before.values()) > 0
    list(backfill(an_amendment(mill), ALL))
    assert (told(mill), mill.published()) == (before, rows)
