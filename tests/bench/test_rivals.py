"""Whoever is measured beside the product counts the same records, on batches so small that the test is quick."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import flink
from bench.access_log import PAGE_VIEWS
from bench.baselines import few_baselines
from bench.cold import ColdTidemill, Declarative
from bench.contestant import Contestant
from bench.limits import DuckDb, Polars
from bench.measured import Series
from bench.series import Course, Plan
from bench.tidemill_batch import TidemillBatch
from bench.workload import Workload
from bench.workloads import BENCH, MORE
from support.short_forms import shortened

TINY = Plan(size=300, warm=0, counted=3, least=3)


def enough(workload: Workload) -> int:
    """How many records it takes; of the access log so many that lines are broken in every way."""
    return 1_500 if workload is PAGE_VIEWS else TINY.size


def measured(
    spark: Any, folder: Path, *contestants: Contestant, workload: Workload = BENCH, size: int = TINY.size
) -> Series:
    never = time.monotonic() + 3_600
    course = Course(spark, folder, lambda text: None, never, never, workload)
    return course.run(replace(TINY, size=size), contestants)


@pytest.mark.spark
@pytest.mark.parametrize("rival", [DuckDb(), Polars()], ids=lambda rival: rival.name)
def test_rows_of_a_rival_equal_one_query_over_the_log(spark: Any, tmp_path: Path, rival: Contestant) -> None:
    series = measured(spark, tmp_path, rival)
    assert series.settled > 100
    assert series.differing == {rival.name: 0}
    assert len(series.seconds[rival.name]) == 3
    assert series.peak_mb[rival.name]["driver"] > 50


@pytest.mark.spark
@pytest.mark.parametrize(("workload", "product"), shortened(MORE, MORE[:1]), ids=lambda one: getattr(one, "name", ""))
def test_tables_of_other_pipelines_equal_one_query_over_the_log(
    spark: Any, tmp_path: Path, workload: Workload, product: type[TidemillBatch]
) -> None:
    series = measured(spark, tmp_path, product(), DuckDb(), workload=workload, size=enough(workload))
    assert series.settled > 20
    assert series.differing == {"tidemill": 0, "duckdb": 0}


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("workload", [workload for workload, _ in MORE], ids=lambda one: one.name)
def test_structured_streaming_keeps_the_same_tables(spark: Any, tmp_path: Path, workload: Workload) -> None:
    series = measured(spark, tmp_path, *few_baselines(), workload=workload, size=enough(workload))
    assert series.settled > 20
    assert set(series.differing.values()) == {0}
    assert len(series.differing) == 2


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("workload", [BENCH, *(workload for workload, _ in MORE)], ids=lambda one: one.name)
def test_rows_of_flink_equal_one_query_over_the_log(spark: Any, tmp_path: Path, workload: Workload) -> None:
    if not (flink.ENVIRONMENT / "whole").exists():
        pytest.skip("`bench.py --flink` installs PyFlink")
    with flink.flink_worker(tmp_path) as worker:
        series = measured(spark, tmp_path, flink.Flink(worker), workload=workload, size=enough(workload))
    assert series.settled > 20
    assert series.differing == {"flink": 0}


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("command", [ColdTidemill(), Declarative()], ids=lambda command: command.name)
def test_rows_of_commands_equal_one_query_over_the_log(spark: Any, tmp_path: Path, command: Contestant) -> None:
    series = measured(spark, tmp_path, command)
    assert series.settled > 100
    assert series.differing == {command.name: 0}
