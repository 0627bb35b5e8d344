"""DuckDB aggregates as Spark SQL does, here and in workers: rows, state, account, watermark, texts of side outputs."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any

import pytest

from support.projects import Mill, a_project, rows_of, sorted_rows
from support.random_pipelines import CLOCK, CONTRACT, TABLE, draw, fed
from support.short_forms import shortened
from support.ways import WAYS
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.errors import DeclarationError
from tidemill.engine.aggregate import native_plan, native_reading
from tidemill.engine.aggregate.native_plan import left_to_spark_sql
from tidemill.engine.read import parts, segments
from tidemill.engine.read.decode import json_layouts

pytestmark = pytest.mark.spark


def a_mill(folder: Path, spark: Any, seed: int, way: str) -> Mill:
    drawn = draw(random.Random(seed))
    mill = Mill(a_project(folder / way, drawn.pipeline, drawn.contracts, **WAYS[way]), spark, "drawn")
    mill.log.create_topic("events", partitions=2)
    return mill


def clocks(commit: Any) -> Any:
    return {topic: at.clocks for topic, at in commit.position.topics.items()}


def run_all(mill: Mill, seed: int) -> list[Any]:
    """The batches of some records: what each counted, and where it left the pipeline; or why one failed."""
    told, batches = list[Any](), fed(seed)
    for number, values in enumerate(batches, start=1):
        for partition, part in enumerate(values):
            mill.feed(part, partition=partition)
        try:
            commit = mill.run(clock=CLOCK, drain=number == len(batches))
        except DeclarationError as error:
            return [*told, (error.message, error.fix)]
        told.append((commit.accounts, commit.position.watermark, clocks(commit), commit.refused_windows))
        told.append((commit.warned, commit.reasons, commit.panes, commit.published, commit.broken))
    return told


def state_of(mill: Mill) -> dict[str, Any]:
    """All rows of state but those of sessions, which tasks leave in stretches.

    Sketches may be written by other bytes and are left out.
    """
    sinks = [s for s in mill.project.pipeline("drawn").sinks if isinstance(s, WindowedSink) and not s.merging]
    rows = {s.table: rows_of(mill.project.table_uri("drawn", "state", s.table)) for s in sinks}
    hidden = ("bytes", "memoryview")
    return {
        table: sorted_rows({k: v for k, v in row.items() if type(v).__name__ not in hidden} for row in found)
        for table, found in rows.items()
    }


@pytest.mark.parametrize("seed", shortened(range(300), range(1)))
def test_all_that_aggregate_give_the_same(
    tmp_path: Path, spark: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        # Several tasks, each of several parts.
        for module, name, value in ((native_plan, "_PART", 5), (segments, "_FEW", 5), (segments, "_PART", 12)):
            monkeypatch.setattr(module, name, value)
        for name, value in (("_PART", 12), ("_LEAST", 3)):
            monkeypatch.setattr(parts, name, value)
    if seed % 3 == 0:
        # In this process, records that are alike are read by a pattern, however few they are.
        monkeypatch.setattr(json_layouts, "FEWEST", 2)
    found: list[Any] = []
    original = native_reading.found_natively
    monkeypatch.setattr(native_reading, "found_natively", lambda *given: found.append(original(*given)) or found[-1])
    here, workers, there = (a_mill(tmp_path, spark, seed, way) for way in WAYS)
    assert left_to_spark_sql(here.project.pipeline("drawn")) == ""
    mine = [run_all(mill, seed) for mill in (here, workers)]
    whole = len(mine[0]) == 6
    assert whole or draw(random.Random(seed)).may_fail
    # A pass gives up where a number overflows, so that Spark says what is wrong.
    assert found.count(None) == (0 if whole else 2)
    assert len(found) == 2 * (len(mine[0]) // 2 + (not whole))
    passes = len(found)
    assert mine == [run_all(there, seed)] * 2
    assert len(found) == passes
    for mill in (here, workers):
        assert mill.everything() == there.everything()
        assert state_of(mill) == state_of(there)


@pytest.mark.parametrize("way", shortened(["here", "workers"], ["workers"]))
def test_task_that_gives_up_leaves_the_batch_to_spark_sql(
    tmp_path: Path, spark: Any, way: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tidemill.engine")
    monkeypatch.setattr(native_plan, "_MOST_BYTES", 10)
    gave_up, there = (a_mill(tmp_path, spark, 0, name) for name in (way, "spark"))
    assert run_all(gave_up, 0) == run_all(there, 0)
    assert gave_up.everything() == there.everything()
    assert state_of(gave_up) == state_of(there)
    assert sum("bytes of aggregates in one task" in each.message for each in caplog.records) == 3


FAILING = """
from tidemill import *

with Pipeline("drawn", every="1 minute") as pipeline:
    readings = pipeline.read("events", contract="readings", event_time="ts")
    readings.with_columns(y="a + 1L").window(Tumbling("10 s")).aggregate(v0=Max("y")).publish("t", contract="t")
"""
T = TABLE.replace("COLUMNS", "      - {name: v0, logicalType: integer}\n")


def test_number_that_overflows_fails_a_batch_with_the_words_of_spark(tmp_path: Path, spark: Any) -> None:
    said = []
    for way, settings in WAYS.items():
        project = a_project(tmp_path / way, FAILING, {"readings": CONTRACT, "t": T}, **settings)
        mill = Mill(project, spark, "drawn")
        assert left_to_spark_sql(project.pipeline("drawn")) == ""
        mill.log.create_topic("events", partitions=1)
        mill.feed([b'{"ts": "2026-01-01T00:00:01Z", "a": 9223372036854775807, "f": true}'])
        with pytest.raises(DeclarationError) as caught:
            mill.run(clock=CLOCK)
        said.append((caught.value.message, caught.value.fix))
        assert mill.everything() == {"t": [], "quarantine": [], "late": []}
    assert said[0] == said[1] == said[2]
    assert "overflow" in said[0][0]
