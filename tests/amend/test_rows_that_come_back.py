"""A table of rows that the declaration lacked for some batches."""

from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from batch.test_batch_flows import EVENTS, a_mill, a_table
from support.projects import Mill, an_event
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Reason
from tidemill.core.repair.selection import OfOffsets
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill

pytestmark = pytest.mark.spark

PLACE = TopicPartition("events", 0)
DECLARED = """
with Pipeline("p", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    events.select("ts", "user", "amount").publish("t", contract="t")
"""
MORE = '    events.select("ts", "user", "amount").publish("u", contract="u")\n'


def declared(mill: Mill, text: str) -> Mill:
    path = mill.project.folder / "pipelines" / "pipeline.py"
    path.write_text(text)
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)


def fed(mill: Mill, *seconds: int) -> None:
    for second in seconds:
        mill.feed([an_event(second, "a", second)])
        mill.run(from_now=Reason(by="ana", why="back"))


def amounts(mill: Mill, table: str) -> list[int]:
    return sorted(row["amount"] for row in mill.published(table))


def test_rows_of_batches_that_were_superseded_without_the_table_are_replaced_when_it_is_back(
    tmp_path: Path, spark: Any
) -> None:
    of_rows = {"ts": "timestamp", "user": "string", "amount": "integer"}
    contracts = {"events": EVENTS, "t": a_table("t", of_rows), "u": a_table("u", of_rows)}
    mill = a_mill(tmp_path, spark, DECLARED + MORE, contracts, ("events",), writer="delta-rs")
    both = (tmp_path / "pipelines" / "pipeline.py").read_text()
    fed(mill, 1, 2, 3)
    mill = declared(mill, both.replace(MORE, ""))
    for _ in range(2):
        done(backfill(an_amendment(mill), OfOffsets(since={PLACE: 1}, until={PLACE: 2})))
    mill = declared(mill, both)
    fed(mill, 4)
    done(backfill(an_amendment(mill), OfOffsets(since={PLACE: 0}, until={PLACE: 1})))
    assert (amounts(mill, "t"), amounts(mill, "u")) == ([1, 2, 3, 4], [1, 2, 3, 4])
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert (amounts(mill, "t"), amounts(mill, "u")) == ([1, 2, 3, 4], [1, 2, 3, 4])
