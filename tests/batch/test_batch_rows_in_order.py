"""Rows that wait until the watermark has passed them, by the recipe of docs/concepts/time.md, without Spark."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.projects import EVENTS_CONTRACT, NO_SPARK, Mill, a_project, an_event, rows_of
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import END

PIPELINE = """
from tidemill import Max, Pipeline, Tumbling

with Pipeline("ordered", every="1 minute") as pipeline:
    (
        pipeline.read("events", contract="events", event_time="ts", delay="5 s")
        .key_by("user")
        .window(Tumbling("1 microsecond"), start="ts", end=None)
        .aggregate(amount=Max("amount"))
        .publish("ordered", contract="ordered")
    )
"""
CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: ordered
version: 1.0.0
status: active
schema:
  - name: ordered
    logicalType: object
    properties:
      - {name: ts, logicalType: timestamp, required: true, primaryKey: true, primaryKeyPosition: 1}
      - {name: user, logicalType: string, required: true, primaryKey: true, primaryKeyPosition: 2}
      - {name: amount, logicalType: integer}
"""


def a_pipeline(folder: Path, key: str = '.key_by("user")') -> Mill:
    text, contract = PIPELINE.replace('.key_by("user")', key), CONTRACT
    if "part" in key:
        place = [f"      - {{name: {name}, logicalType: integer}}\n" for name in ("part", "at")]
        contract = "".join(line for line in CONTRACT.splitlines(keepends=True) if "user" not in line) + "".join(place)
        contract = contract.replace(", primaryKey: true, primaryKeyPosition: 1", "")
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "ordered": contract}
    mill = Mill(a_project(folder, text, contracts), NO_SPARK, "ordered")
    mill.log.create_topic("events", partitions=1)
    return mill


def test_rows_without_a_key_of_their_own_are_told_apart_by_their_place_in_the_log(tmp_path: Path) -> None:
    mill = a_pipeline(tmp_path, key='.with_columns(part="_partition", at="_offset").key_by("part", "at")')
    mill.feed([an_event(3, amount=amount) for amount in (5, 5, 2)])
    mill.catch_up()
    assert sorted(row["amount"] for row in rows_of(mill.project.published_uri("ordered"))) == [2, 5, 5]


def released(mill: Mill) -> dict[int, list[dict[str, Any]]]:
    """The rows of each batch."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows_of(mill.project.published_uri("ordered")):
        found.setdefault(row["batch_id"], []).append(row)
    return found


def test_row_13_rows_wait_for_the_watermark_and_come_in_stretches_of_event_time(tmp_path: Path) -> None:
    mill = a_pipeline(tmp_path)
    mill.feed([an_event(second, amount=second) for second in (3, 1, 7)])
    mill.run()
    assert [row["amount"] for row in released(mill)[1]] == [1]
    mill.feed([an_event(second, amount=second) for second in (6, 9, 13)])
    mill.run()
    assert sorted(row["amount"] for row in released(mill)[2]) == [3, 6, 7]
    mill.feed([an_event(7.5, amount=0), an_event(8, "b", 8)])
    mill.catch_up()
    assert sorted(row["amount"] for row in released(mill)[3]) == [8, 9, 13]
    assert [row["value"] for row in mill.own("late")] == [an_event(7.5, amount=0)]


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_releases_what_lies_between_two_watermarks(tmp_path: Path, seed: int) -> None:
    mill, draw, ends, fed = a_pipeline(tmp_path), random.Random(seed), {0: 0}, 0
    for batch in range(1, 7):
        events = [(10 * batch + draw.uniform(-4, 9), f"u{fed + n}") for n in range(draw.randint(0, 9))]
        fed += len(events)
        mill.feed([an_event(second, user, batch) for second, user in events])
        mill.run()
    mill.catch_up()
    commits = mill.project.ledger("ordered").past().batches()
    ends |= {each.batch_id: each.after for each in commits}
    assert ends[max(ends)] == END
    rows, late = released(mill), len(mill.own("late"))
    for before, after in pairwise(sorted(ends)):
        assert all(ends[before] <= micros(row["ts"]) < ends[after] for row in rows.get(after, ()))
    assert sum(map(len, rows.values())) + late == fed
