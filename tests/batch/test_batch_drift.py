"""Partitions that may not be too far ahead: each way to read records cuts a batch at the same offsets."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.commands import type_command
from support.projects import EVENTS_CONTRACT, NO_SPARK, Mill, a_project, an_event
from support.short_forms import shortened
from tidemill.core.errors import DeclarationError
from tidemill.core.exit_code import ExitCode
from tidemill.ledger.process import this_process
from tidemill.run.batch import NothingToDo
from tidemill.run.claiming import Request, next_plan
from tidemill.run.looking import look_of

pytestmark = pytest.mark.spark

DRIFT = 30

COUNTS = """
apiVersion: v3.1.0
kind: DataContract
id: counts
version: 1.0.0
status: active
schema:
  - name: counts
    logicalType: object
    properties:
      - {name: window_start, logicalType: timestamp, required: true}
      - {name: window_end, logicalType: timestamp, required: true}
      - {name: n, logicalType: integer, required: true}
"""

PIPELINE = """
from tidemill import Count, Pipeline, Tumbling

with Pipeline("counts", every="1 minute", idle_timeout=None, max_drift="30 s") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts", HOW)
    events.window(Tumbling("10 seconds")).aggregate(n=Count()).publish("counts", contract="counts")
"""

WAYS: dict[str, dict[str, Any]] = {"here": {}, "workers": {"driver_records": 0}, "spark": {"aggregate": "spark"}}
HOW = {"none": "", "delay": 'delay="3 s"', "told": "watermark=\"CASE WHEN user = 'mark' THEN ts END\""}


def a_mill(folder: Path, spark: Any, way: str, how: str) -> Mill:
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "reject"), "counts": COUNTS}
    mill = Mill(a_project(folder, PIPELINE.replace("HOW", HOW[how]), contracts, **WAYS[way]), spark, "counts")
    mill.log.create_topic("events", partitions=2)
    return mill


Drawn = list[tuple[bytes, int | None, bool]]


def drawn(seed: int) -> list[Drawn]:
    """For each partition: records, their event times in seconds or None where they are rejected, and who is a mark."""
    luck, partitions = random.Random(seed), []
    for pace in (luck.choice([1, 3]), luck.choice([4, 9])):
        second, found = luck.randrange(20), []
        for _ in range(luck.randrange(10, 40)):
            second += luck.randrange(-3, 2 * pace)
            at, marks = max(second, 0), luck.random() < 0.5
            if luck.random() < 0.1:
                found.append((luck.choice([b"broken", json.dumps({"user": "a"}).encode()]), None, False))
            else:
                found.append((an_event(at, "mark" if marks else "a"), at, marks))
        partitions.append(found)
    return partitions


def expected(partitions: list[Drawn], offsets: list[int], marks: list[int | None], how: str) -> list[int]:
    """The offsets after the next batch without a read limit."""
    after = [seen(part[at:], mark, how) for part, at, mark in zip(partitions, offsets, marks, strict=True)]
    most = min((mark for mark in after if mark is not None), default=0) + DRIFT
    found = []
    for part, at, mark in zip(partitions, offsets, marks, strict=True):
        end = at
        while end < len(part) and (seen(part[end : end + 1], mark, how) or 0) <= most:
            end += 1
        found.append(end)
    return found


def seen(part: Drawn, mark: int | None, how: str) -> int | None:
    """The watermark after some records."""
    told = [t if how == "told" else t - 3 for _, t, marks in part if t is not None and (marks or how == "delay")]
    return max([*told, *([] if mark is None else [mark])], default=None)


@pytest.mark.parametrize(
    ("way", "how", "seed"),
    shortened(
        [(way, how, seed) for way in WAYS for how in ("delay", "told") for seed in range(40)],
        [("here", "delay", 0), ("here", "told", 1), ("workers", "told", 0), ("spark", "delay", 1)],
    ),
)
def test_each_way_to_read_records_cuts_at_the_same_offsets_as_a_plain_rule(
    tmp_path: Path, spark: Any, way: str, how: str, seed: int
) -> None:
    mill, partitions = a_mill(tmp_path, NO_SPARK if way == "here" else spark, way, how), drawn(seed)
    for number, part in enumerate(partitions):
        mill.feed([value for value, _, _ in part], partition=number)
    offsets, marks, late = [0, 0], list[int | None]([None, None]), 0
    while not isinstance(commit := mill.run(), NothingToDo):
        late += commit.accounts["events"].late
        wanted = expected(partitions, offsets, marks, how)
        at = commit.position.topics["events"].offsets
        assert [at[0], at[1]] == wanted
        marks = [seen(part[:end], None, how) for part, end in zip(partitions, wanted, strict=True)]
        offsets = wanted
    assert expected(partitions, offsets, marks, how) == offsets
    # The slow partition has ended; a drain reads what waits for it.
    late += sum(commit.accounts["events"].late for commit in mill.catch_up())
    accepted = sum(time is not None for part in partitions for _, time, _ in part)
    assert sum(row["n"] for row in mill.published()) == accepted - late


def test_row_41_a_batch_ends_before_the_first_record_that_is_too_far_ahead(tmp_path: Path, spark: Any) -> None:
    mill = a_mill(tmp_path, spark, "here", "none")
    mill.feed([an_event(1_000 + second) for second in (10, 25, 30, 29, 31, 42)])
    mill.feed([an_event(999), an_event(1_000)], partition=1)
    plan = next_plan(
        mill.project.pipeline("counts"),
        mill.log,
        mill.project.ledger("counts").view(),
        Request(executor=this_process(), clock=datetime.now(UTC), look=look_of(mill.project, mill.log)),
    )
    assert plan is not None
    assert plan.topics["events"].idle == ()
    assert mill.run().position.topics["events"].offsets == {0: 4, 1: 2}
    assert isinstance(mill.run(), NothingToDo)
    mill.feed([an_event(1_012)], partition=1)
    assert mill.run().position.topics["events"].offsets == {0: 6, 1: 3}


def test_a_plan_that_is_only_shown_is_the_plan_of_the_batch(tmp_path: Path, spark: Any) -> None:
    mill = a_mill(tmp_path, spark, "here", "delay")
    mill.feed([an_event(second) for second in (0, 20, 25, 31, 40, 41)])
    mill.feed([an_event(10)], partition=1)
    shown = type_command(tmp_path, "plan", "counts", "--dry-run", "--json").json["ranges"]
    assert [each["until_offset"] for each in shown] == [5, 1]
    assert mill.run().position.topics["events"].offsets == {0: 5, 1: 1}
    # Nobody knows yet whether partition 1 has become silent.
    assert type_command(tmp_path, "plan", "counts", "--dry-run").code == ExitCode.NOTHING_TO_DO
    assert isinstance(mill.run(), NothingToDo)
    said = type_command(tmp_path, "run", "counts", "--until-caught-up", session=lambda _: NO_SPARK).out
    assert "caught up; waiting for a slower partition (max_drift): 1 record" in said
    assert (
        "30 seconds ahead of events-1, the slowest: 2026-01-01 00:00:07"
        in type_command(tmp_path, "status", "counts").out
    )


def test_an_error_of_a_look_names_what_failed_and_nothing_moves(tmp_path: Path, spark: Any) -> None:
    mill = a_mill(tmp_path, spark, "here", "told")
    path = tmp_path / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace("THEN ts END", "THEN timestamp_micros(amount div (amount - 1)) END"))
    mill = Mill(mill.project.load(tmp_path), spark, "counts")
    mill.feed([an_event(0, "mark", 1)])
    with pytest.raises(DeclarationError, match="counts: a look at the records of batch 1"):
        mill.run()
    assert mill.project.ledger("counts").view().open_batch is None
