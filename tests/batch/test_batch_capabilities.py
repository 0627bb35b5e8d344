"""What a stream processor is expected to do, shown on the real engine: docs/semantics-shown.md has the rows."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable

from batch.test_batch_flows import EVENTS, WINDOW, a_mill, a_table
from batch.test_batch_semantics import windows
from support.commands import type_command
from support.projects import (
    EVENTS_CONTRACT,
    NOW,
    SUMS_CONTRACT,
    SUMS_PIPELINE,
    Mill,
    a_project,
    an_event,
    somebody,
    sums,
)
from support.spark_work import Work, watched
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.project.project import Project
from tidemill.run.batch import NothingToDo

pytestmark = pytest.mark.spark


def at_version(uri: str, version: int) -> list[dict[str, Any]]:
    """The rows of a table as an older version had them."""
    rows: list[dict[str, Any]] = pa.table(DeltaTable(uri, version=version).to_pyarrow_table()).to_pylist()
    return rows


def test_state_and_result_of_a_key_grow_with_each_batch_and_can_be_read_as_they_were(
    tmp_path: Path, spark: Any
) -> None:
    mill = sums(tmp_path, spark, trigger="on_update")
    commits = []
    for seconds in ((1, 2, 3), (4, 5)):
        mill.feed(an_event(s, "a") for s in seconds)
        commits.append(mill.run())
    state, published = mill.project.table_uri("sums", "state", "sums"), mill.project.published_uri("sums")
    counts = []
    for commit in commits:
        marks = commit.position.tables
        rows = at_version(state, marks["state/sums"].version)
        (result,) = at_version(published, marks["published/sums"].version)
        counts.append((sum(row["n__value"] for row in rows), result["n"]))
    assert counts == [(3, 3), (5, 5)]


def test_a_silent_partition_holds_the_watermark_for_its_timeout_and_what_it_then_sends_is_late(
    tmp_path: Path, spark: Any
) -> None:
    mill = sums(tmp_path, spark, partitions=2)
    text = mill.project.folder / "pipelines" / "pipeline.py"
    text.write_text(text.read_text().replace('every="1 minute"', 'every="1 minute", idle_timeout="60 s"'))
    mill, seen = Mill(Project.load(tmp_path), spark, "sums"), []
    # Seconds of the clock, then the event of each partition.
    for second, events in ((0, {0: 100, 1: 50}), (60, {0: 200}), (61, {0: 210}), (62, {1: 120})):
        for partition, event in events.items():
            mill.feed([an_event(event)], partition=partition)
        commit = mill.run(clock=NOW + timedelta(seconds=second))
        seen.append(commit.position.watermark / 1_000_000 - NOW.timestamp())
    assert seen == [50, 50, 210, 210]
    assert [(r["partition"], r["offset"]) for r in mill.own("late")] == [(1, 1)]
    # With all of them silent nobody is left to say that time went on.
    assert isinstance(mill.run(clock=NOW + timedelta(hours=1)), NothingToDo)


MERGED = """
with Pipeline("p", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts", delay="1 hour")
    events.key_by("user").window(Tumbling("10 s")).aggregate(
        n=Count(), total=Sum("amount"), low=Min("amount"), high=Max("amount"), mean=Average("amount"),
        different=Distinct("amount"), about=ApproxDistinct("amount"),
    ).publish("t", contract="t")
"""
MERGED_TYPES = {**dict.fromkeys(("n", "total", "low", "high", "different", "about"), "integer"), "mean": "number"}


def test_partial_aggregates_of_1_4_and_16_parallel_tasks_merge_to_the_same_rows(tmp_path: Path, spark: Any) -> None:
    found = []
    contract = a_table("t", {**WINDOW, "user": "string", **MERGED_TYPES})
    shuffles = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        for tasks in (1, 4, 16):
            mill = a_mill(tmp_path / str(tasks), spark, MERGED, {"events": EVENTS, "t": contract}, ())
            mill.log.create_topic("events", partitions=tasks)
            for partition in range(tasks):
                mine = range(partition, 320, tasks)
                mill.feed([an_event(i % 59, f"u{i % 5}", i % 101) for i in mine], partition=partition)
            spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
            mill.run(drain=True)
            found.append(mill.published("t"))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", shuffles)
    assert sum(row["n"] for row in found[0]) == 320
    assert len(found[0]) == 30
    for rows in found[1:]:
        assert [{**row, "mean": pytest.approx(row["mean"], rel=1e-12)} for row in rows] == found[0]


def shuffled(times: Sequence[int], bound: int, chance: random.Random) -> list[int]:
    """The times in an order in which none comes more than `bound` behind a later one."""
    return sorted(times, key=lambda t: t + chance.uniform(0, bound))


@pytest.mark.parametrize("batches", [(5, 1), pytest.param((100, 10, 1), marks=pytest.mark.long)])
def test_a_thousand_shuffles_within_the_delay_give_the_same_windows_whatever_the_size_of_batches(
    tmp_path: Path, spark: Any, batches: tuple[int, ...]
) -> None:
    chance = random.Random(42)
    times = [chance.randrange(0, 3600) for _ in range(100)]
    keys = 1_000
    orders = [shuffled(times, 60, chance) for _ in range(keys)]
    # The n-th record of every order, then the next ones: each order reaches the log within its bound.
    records = [an_event(order[n], f"{key}") for n in range(len(times)) for key, order in enumerate(orders)]
    expected = Counter(t // 600 * 600 for t in times)
    paces = []
    for count in batches:
        # An order's n-th record may stand beside another's later one: hence the delay of two bounds and a gap.
        mill = sums(tmp_path / str(count), spark, window='Tumbling("10 minutes")', delay="10 minutes")
        mill.feed(records)
        commits = mill.catch_up(limit=-(-len(records) // count))
        rows = pa.table(DeltaTable(mill.project.published_uri("sums")).to_pyarrow_table())
        starts = pc.divide(pc.subtract(rows["window_start"].cast("int64"), int(NOW.timestamp()) * 1_000_000), 1_000_000)
        found = Counter(zip(starts.to_pylist(), rows["n"].to_pylist(), strict=True))
        assert found == dict.fromkeys(expected.items(), keys)
        assert mill.own("late") == []
        # What a batch took and how much it read, its commit says.
        seconds = sum((commit.at - commit.started).total_seconds() for commit in commits)
        assert len(commits) == count
        paces.append(len(records) / seconds)
    if len(batches) > 2:
        assert paces[0] < paces[-1], "larger batches take longer and bring more records a second"


OVERLAP = """
with Pipeline("p", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    parts = events.split(overlap=True, big="amount >= 5", even="amount % 2 = 0", default="odd")
    parts["big"].window(Tumbling("10 s")).aggregate(n=Count()).publish("big", contract="big")
    parts["even"].select("user", "amount").publish("even", contract="even")
    parts["odd"].select("user", "amount").publish("odd", contract="odd")
"""


def overlapping(folder: Path, spark: Any) -> Mill:
    rows = {"user": "string", "amount": "integer"}
    contracts = {name: a_table(name, rows) for name in ("even", "odd")}
    contracts["big"] = a_table("big", {**WINDOW, "n": "integer"})
    return a_mill(folder, spark, OVERLAP, {"events": EVENTS, **contracts}, ("events",))


def test_a_split_that_overlaps_sends_a_row_to_every_branch_it_meets_and_counts_and_reads_it_once(
    tmp_path: Path, spark: Any
) -> None:
    mill = overlapping(tmp_path, spark)
    amounts = [6, 8, 7, 2, 3, 1, None]
    mill.feed(an_event(i, str(i), amount) for i, amount in enumerate(amounts))
    with watched(spark) as work:
        commit = mill.run(drain=True)
    assert [r["n"] for r in mill.published("big")] == [3]
    assert sorted(r["amount"] for r in mill.published("even")) == [2, 6, 8]
    assert [r["amount"] for r in mill.published("odd")] == [3, 1, None]
    assert str(commit.accounts["events"]) == "read=7 aggregated=7 filtered=0 rejected=0 late=0 shed=0"
    assert scanned(work) == 7, "three outputs share one reading of the log"


def scanned(work: Work) -> int:
    """The records that workers read from segments and decoded, over all jobs."""
    return work.sum("number of output rows", of="MapInArrow")


def test_an_unused_column_is_not_shuffled_and_each_task_shuffles_a_row_for_a_key_at_most(
    tmp_path: Path, spark: Any
) -> None:
    tasks, keys, many, sizes = 4, 10, 24_000, []
    for wide in (True, False):
        mill = sums(tmp_path / str(wide), spark, partitions=tasks, aggregate="spark")
        padding = {"padding": "x" * 1_000} if wide else {}
        for partition in range(tasks):
            mine = range(partition, many, tasks)
            mill.feed([an_event(i % 10, f"u{i % keys}", i, **padding) for i in mine], partition=partition)
        with watched(spark) as work:
            mill.run(drain=True)
        assert sum(r["n"] for r in mill.published()) == many
        # The partial rows of each task, and once more what they are merged to.
        assert 0 < work.sum("shuffle records written") <= 2 * keys * tasks
        sizes.append((work.sum("shuffle bytes written"), mill.published()))
    (wide_bytes, wide_rows), (lean_bytes, lean_rows) = sizes
    assert wide_rows == lean_rows
    assert 0 < wide_bytes <= 1.1 * lean_bytes
    assert wide_bytes < many * 1_000 / 100


TWO = SUMS_PIPELINE + SUMS_PIPELINE.split("\n", 2)[2].replace('"sums"', '"slow"').replace("pipeline", "other")


def test_two_pipelines_read_one_topic_each_at_its_own_pace(tmp_path: Path, spark: Any) -> None:
    text = TWO.replace("WINDOW", 'Tumbling("10 seconds")').replace("DELAY", "0 s").replace("LATENESS", "0 s")
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "sums": SUMS_CONTRACT}
    contracts["slow"] = SUMS_CONTRACT.replace("sums", "slow")
    project = a_project(tmp_path, text.replace("TRIGGER", "on_close"), contracts)
    fast, slow = Mill(project, spark, "sums"), Mill(project, spark, "slow")
    fast.log.create_topic("events", 1)
    places = []
    for turn in range(3):
        fast.feed(an_event(turn * 10 + s) for s in range(10))
        read = [mill.run(limit=limit).position.topics["events"].offsets[0] for mill, limit in ((fast, None), (slow, 1))]
        places.append(tuple(read))
    assert places == [(10, 1), (20, 2), (30, 3)]
    for mill in (fast, slow):
        mill.catch_up()
    assert fast.published("sums") == slow.published("slow")
    assert len(fast.published("sums")) == 3


def moved(folder: Path, shared: Path, spark: Any) -> Mill:
    """The project on another machine: only lake and log are where they were."""
    places = {"lake": {"path": str(shared / "lake")}, "log": {"path": str(shared / "log")}}
    text = SUMS_PIPELINE.replace("WINDOW", 'Tumbling("10 seconds")').replace("DELAY", "0 s").replace("LATENESS", "0 s")
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "sums": SUMS_CONTRACT}
    return Mill(a_project(folder, text.replace("TRIGGER", "on_close"), contracts, **places), spark, "sums")


def test_another_machine_goes_on_from_the_last_commit_when_one_and_its_disk_are_gone(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, shared = moved(tmp_path / "first", tmp_path / "shared", spark), tmp_path / "shared"
    first.log.create_topic("events", 1)
    first.feed(an_event(s) for s in (1, 2, 11))
    assert first.run(executor=somebody("first")).batch_id == 1
    first.feed(an_event(s) for s in (12, 21))
    monkeypatch.setenv(VARIABLE, "state:sums=raise")
    with pytest.raises(Injected):
        first.run(executor=somebody("first"))
    monkeypatch.delenv(VARIABLE)
    shutil.rmtree(tmp_path / "first")
    second = moved(tmp_path / "second", shared, spark)
    taken = second.run(executor=somebody("second"))
    assert (taken.batch_id, taken.attempt, taken.accounts["events"].read) == (2, 2, 2)
    second.catch_up()
    assert windows(second) == {(0, "a"): (2, 2), (10, "a"): (2, 2), (20, "a"): (1, 1)}


def three_pipelines(folder: Path) -> Project:
    """Three of the kind of `sums`, each with an owner."""
    text, contracts = "from tidemill import *\n", {"events": EVENTS_CONTRACT.replace("EXTRA", "keep")}
    for name in ("first", "second", "third"):
        one = SUMS_PIPELINE.split("\n", 2)[2].replace("sums", name).replace("pipeline", f"{name}_pipeline")
        text += one.replace('every="1 minute"', f'every="1 minute", owner="owner of {name}"')
        contracts[name] = SUMS_CONTRACT.replace("sums", name)
    text = text.replace("WINDOW", 'Tumbling("10 seconds")').replace("DELAY", "0 s").replace("LATENESS", "0 s")
    return a_project(folder, text.replace("TRIGGER", "on_close"), contracts)


def test_of_three_batches_at_once_the_killed_one_is_known_by_process_operators_and_owner_and_the_others_go_on(
    tmp_path: Path, spark: Any
) -> None:
    project = three_pipelines(tmp_path)
    mills = {name: Mill(project, spark, name) for name in ("first", "second", "third")}
    mills["first"].log.create_topic("events", 1)
    mills["first"].feed([an_event(1), an_event(15)])
    command = [sys.executable, "-m", "tidemill.cli.main", "--project", str(tmp_path), "run", "first"]
    with subprocess.Popen(command, env={**os.environ, VARIABLE: "claimed=kill;planned=kill"}) as killed:
        for name in ("second", "third"):
            assert mills[name].run().batch_id == 1
    assert killed.returncode == -signal.SIGKILL
    status_of = {each["pipeline"]: each for each in type_command(tmp_path, "status", "--json").lines}
    assert [status_of[name]["batch_id"] for name in mills] == [0, 1, 1]
    assert [status_of[name]["open_batch"] is None for name in mills] == [False, True, True]
    failed = status_of["first"]["open_batch"]
    assert (failed["holder"], failed["pid"], failed["attempt"]) == ("gone", killed.pid, 1)
    assert "owner of first" in type_command(tmp_path, "status", "first").out
    shown = type_command(tmp_path, "explain", "first").out
    assert all(operator in shown for operator in ("read_1", "filter_1", "window_1", "aggregate_1", "publish_1"))
    assert mills["first"].run().attempt == 2
    assert mills["first"].published() == mills["second"].published() == mills["third"].published()
