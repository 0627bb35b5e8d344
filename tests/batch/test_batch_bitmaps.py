"""State with a Bloom filter and a bitmap, through the whole protocol: the case of row 19."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from amend.conftest import an_amendment
from support.commands import type_command
from support.projects import EVENTS_CONTRACT, Mill, a_project, an_event, rows_of
from tidemill import BloomFilter
from tidemill.core.errors import Incompatible
from tidemill.inspect.verify import Scope, verify
from tidemill.project.project import Project
from tidemill.repair.rebuild import rebuild

pytestmark = pytest.mark.spark

PIPELINE = """
from tidemill import *

with Pipeline("seen", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts", delay="1 hour")
    events.window(Global()).aggregate(
        n=Count(), users=BloomFilter("user", items=100_000), amounts=Bitmap("amount", size=100_000)
    ).publish("seen", contract="seen")
"""
CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: seen
version: 1.0.0
status: active
schema:
  - name: seen
    properties:
      - {name: n, logicalType: integer}
      - {name: users, logicalType: string, physicalType: binary}
      - {name: amounts, logicalType: string, physicalType: binary}
"""
KEYS, OTHERS = 100_000, 50_000


def a_mill(folder: Path, spark: Any, **settings: Any) -> Mill:
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "seen": CONTRACT}
    mill = Mill(a_project(folder, PIPELINE, contracts, **settings), spark, "seen")
    mill.log.create_topic("events", partitions=1)
    return mill


def the_row(mill: Mill) -> dict[str, Any]:
    (row,) = rows_of(Project.load(mill.project.folder).published_uri("seen"))
    return {name: row[name] for name in ("n", "users", "amounts")}


@pytest.mark.parametrize("writer", ["delta-rs", pytest.param("spark", marks=pytest.mark.long)])
def test_a_filter_of_100_000_keys_has_no_false_negative_and_is_the_same_bytes_after_a_rebuild(
    tmp_path: Path, spark: Any, writer: str
) -> None:
    mill = a_mill(tmp_path, spark, writer=writer)
    for first in (0, KEYS // 2):
        mill.feed([an_event(0, f"user-{n}", n) for n in range(first, first + KEYS // 2)])
        mill.run()
    before = the_row(mill)
    assert before["n"] == KEYS
    assert before["amounts"] == bytes([0xFF]) * (KEYS // 8) + bytes(len(before["amounts"]) - KEYS // 8)
    # Compiled: this is millions of steps for the interpreter of the other tests.
    quick = spark.newSession()
    quick.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    quick.conf.set("spark.sql.codegen.wholeStage", "true")
    seen = quick.createDataFrame([(before["users"],)], "users BINARY")
    asked = quick.range(KEYS + OTHERS).selectExpr("id", "concat('user-', id) AS user").crossJoin(seen)
    question = BloomFilter("user", items=KEYS).might_contain("users", "user")
    found = dict(asked.where(question).groupBy((F.col("id") < KEYS).alias("known")).count().collect())
    assert found[True] == KEYS
    assert 0 < found[False] <= 0.015 * OTHERS
    list(rebuild(an_amendment(mill)))
    assert the_row(mill) == before
    again = Mill(Project.load(tmp_path), spark, "seen")
    assert all(found.agrees for found in verify(an_amendment(again), Scope()))
    path = tmp_path / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace("items=100_000", "items=90_000"))
    changed = Mill(Project.load(tmp_path), spark, "seen")
    with pytest.raises(Incompatible, match="the state of seen was built by another declaration"):
        list(verify(an_amendment(changed), Scope()))


def test_bytes_are_told_by_their_number_and_hash_and_a_number_without_a_bit_by_a_warning(
    tmp_path: Path, spark: Any
) -> None:
    mill = a_mill(tmp_path, spark)
    mill.feed([an_event(0, "a", 1), an_event(10_000, "b", 2)])
    mill.run()
    told = type_command(tmp_path, "explain", "seen", "--table", "seen")
    assert "amounts=16,384 bytes, SHA-256 " in told.out
    assert len(told.out) < 2_000
    shown = type_command(tmp_path, "explain", "seen", "--table", "seen", "--json").json
    assert base64.b64decode(shown["row"]["amounts"]) == the_row(mill)["amounts"]
    assert the_row(mill)["amounts"] is not None
    mill.feed([an_event(20_000, "c", -1)])
    assert mill.run().broken == ("warning seen: amounts.overflow: 1 of 1 rows: bitmaps without a bit for a number",)
    assert the_row(mill)["amounts"] is None
