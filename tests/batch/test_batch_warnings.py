"""Rules of severity warning: the records stay, and every commit says how many of them broke which rule."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from batch.test_batch_flows import EVENTS, SPLIT, WINDOW, a_mill, a_table
from support.commands import type_command
from support.projects import Mill, an_event
from tidemill.testing import report
from tidemill_airflow.tasks.facts import Known, facts, summary

pytestmark = pytest.mark.spark

WARNING = """    quality:
      - {type: custom, engine: tidemill, name: large, severity: warning, implementation: "amount < 7"}
      - {type: custom, engine: tidemill, name: named, severity: warning, implementation: "user <> 'x'"}
      - {type: custom, engine: tidemill, name: negative, implementation: "amount >= 0"}
"""
RECORDS = [
    an_event(1, amount=9),
    an_event(2, "x", 8),
    an_event(3, "x", -1),
    an_event(4, amount=1),
    an_event(5, amount=None),
    b"broken",
]
ONE = """
with Pipeline("p", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    events.filter("amount > 8").window(Tumbling("10 s")).aggregate(n=Count()).publish("big", contract="big")
"""


def warned_mill(folder: Path, spark: Any, pipeline: str) -> Mill:
    contracts = {name: a_table(name, {**WINDOW, "n": "integer"}) for name in ("big", "small")}
    odd = a_table("odd", {"user": "string", "amount": "integer"})
    # The rules of the object stand before its columns.
    events = EVENTS.replace("    properties:\n", f"{WARNING}    properties:\n")
    return a_mill(folder, spark, pipeline, {"events": events, "odd": odd, **contracts}, ("events",))


@pytest.mark.parametrize("pipeline", [ONE, SPLIT], ids=["in the only pass", "over rows that are kept"])
def test_records_that_break_a_warning_stay_and_are_counted(tmp_path: Path, spark: Any, pipeline: str) -> None:
    mill = warned_mill(tmp_path, spark, pipeline)
    mill.feed(RECORDS)
    commit = mill.run()
    # A rejected record counts for no warning, and its reasons name none.
    assert [r["reasons"] for r in mill.own("quarantine") if r["offset"] == 2] == [["negative"]]
    assert commit.warned == {"events": {"large": 2, "named": 1}}
    assert commit.accounts["events"].rejected == 2
    assert mill.project.ledger("p").view().last_commit == commit
    mill.feed([an_event(6, amount=1)])
    assert mill.run().warned is None


def test_warnings_are_shown_wherever_a_batch_is(tmp_path: Path, spark: Any) -> None:
    mill = warned_mill(tmp_path, spark, ONE)
    mill.feed(RECORDS)
    lines = ["warning events: large: 2 records", "warning events: named: 1 record"]
    for words in (("run", "p"), ("status", "p"), ("history", "p")):
        said = type_command(mill.project.folder, *words, session=lambda _: spark).out
        assert [line for line in lines if line in " ".join(said.split())] == lines, words
    commit = mill.project.ledger("p").view().last_commit
    assert commit is not None
    assert summary(commit).endswith("; " + "; ".join(lines))
    assert facts(commit, Known())["broken"] == lines
    trial = SimpleNamespace(name="p", commits=[commit])
    assert report.told([cast("Any", trial)]).splitlines()[-2:] == [f"  {line}" for line in lines]
    [status] = [
        json.loads(line) for line in type_command(mill.project.folder, "status", "p", "--json").out.splitlines()
    ]
    assert status["last_commit"]["warned"] == {"events": {"large": 2, "named": 1}}
