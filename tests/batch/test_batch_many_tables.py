"""Pipelines of many tables: the statement of an input is divided, and no table sees another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.every_window import BOUNDS
from support.firings import CONTRACT
from support.projects import EVENTS_CONTRACT, Mill, a_project, an_event
from tidemill.engine.aggregate import branches

pytestmark = pytest.mark.spark

HEAD = """
from tidemill import *

with Pipeline("many", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
"""
TABLE = """
    events.filter("amount > NUMBER").with_columns(amount="amount * NUMBER").key_by("user").window(
        Tumbling("10 s"), allowed_lateness="NUMBER s"
    ).aggregate(n=Count(), amount=Sum("amount")).publish("tableNUMBER", contract="tableNUMBER")
"""


def many(folder: Path, session: Any, tables: int, **settings: Any) -> tuple[Mill, list[Any]]:
    """The pipeline after four batches, and what their commits count."""
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep")}
    lines = "".join(line for line in CONTRACT.splitlines(keepends=True) if "amounts" not in line)
    for number in range(tables):
        contracts[f"table{number}"] = lines.replace("firings", f"table{number}") + BOUNDS
    text = HEAD + "".join(TABLE.replace("NUMBER", str(number)) for number in range(tables))
    mill = Mill(a_project(folder, text, contracts, **settings), session, "many")
    mill.log.create_topic("events", partitions=1)
    counted = []
    for seconds in ([1, 2, 3], [31, 32], [18, 24, 27, 29, 40], [90]):
        mill.feed([*(an_event(second, "ab"[second % 2], second % 9) for second in seconds), an_event(0, "a", 0)])
        mill.feed([b"{"] if seconds[0] < 30 else [])
        commit = mill.run()
        counted.append((commit.accounts, commit.refused_windows, commit.published))
    return mill, counted


@pytest.mark.parametrize("together", [pytest.param(1, marks=pytest.mark.long), 2])
def test_however_the_statement_is_divided_tables_and_accounts_are_the_same(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    whole, counted = many(tmp_path / "whole", spark, 5)
    monkeypatch.setattr(branches, "_TOGETHER", together)
    here, there = many(tmp_path / "here", spark, 5), many(tmp_path / "there", spark, 5, aggregate="spark")
    assert here[0].everything() == there[0].everything() == whole.everything()
    assert here[1] == there[1] == counted
    assert len({str(rows) for rows in whole.everything().values()}) > 5


@pytest.mark.long
def test_forty_tables_are_published_with_spark_and_without(tmp_path: Path, spark: Any) -> None:
    here, there = many(tmp_path / "here", spark, 40), many(tmp_path / "there", spark, 40, aggregate="spark")
    assert here[0].everything() == there[0].everything()
    assert here[1] == there[1]
