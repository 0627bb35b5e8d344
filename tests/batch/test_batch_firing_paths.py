"""Tables of firings on Spark that several paths lead to, beside tables of other kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from support.firings import CONTRACT
from support.projects import EVENTS_CONTRACT, SUMS_CONTRACT, Mill, a_project, an_event
from tidemill.inspect.verify import Scope, verify

pytestmark = pytest.mark.spark

PIPELINE = """
from tidemill import *

with Pipeline("firings", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    others = pipeline.read("others", contract="events", event_time="ts")
    both = events.union(others, events.filter("amount > 2"))
    (
        both.key_by("user")
        .window(TumblingBuffer(CountPolicy(3)))
        .aggregate(n=Count(), amount=Sum("amount"), amounts=Collect("amount"))
        .publish("firings", contract="firings")
    )
    (
        events.with_columns(user="coalesce(user, 'nobody')")
        .key_by("user")
        .window(Tumbling("10 seconds"))
        .aggregate(n=Count(), amount=Sum("amount"))
        .publish("sums", contract="sums")
    )
    events.select("user", "amount").publish("copies", contract="copies")
"""

COPIES = """
apiVersion: v3.1.0
kind: DataContract
id: copies
version: 1.0.0
status: active
schema:
  - name: copies
    logicalType: object
    properties:
      - {name: user, logicalType: string}
      - {name: amount, logicalType: integer}
"""


def test_records_count_once_for_each_path_to_a_table_of_firings(tmp_path: Path, spark: Any) -> None:
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "sums": SUMS_CONTRACT, "copies": COPIES}
    user = "name: user, logicalType: string"
    contracts["firings"] = CONTRACT.replace(f"{user}, required: true", user)
    mill = Mill(a_project(tmp_path, PIPELINE, contracts), spark, "firings")
    for topic in ("events", "others"):
        mill.log.create_topic(topic, partitions=1)
    mill.feed([an_event(n, None, n) for n in range(1, 5)])
    mill.feed([an_event(n, None, 10 * n) for n in range(1, 3)], topic="others")
    mill.run()
    mill.feed([an_event(20, None, 5)])
    mill.run(drain=True)
    assert sorted(sorted(row["amounts"]) for row in mill.published("firings")) == [[1, 2, 3], [3, 4, 4], [5, 10, 20]]
    assert [row["amount"] for row in mill.published("sums")] == [10, 5]
    assert sorted(row["amount"] for row in mill.published("copies")) == [1, 2, 3, 4, 5]
    for found in verify(an_amendment(mill), Scope()):
        assert found.differences.count == 0, found
