"""Batches give what a plain oracle computes: rows, counts, watermark, reasons and side outputs of random pipelines."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.drawn_expressions import Overflow
from support.pipeline_oracle import Oracle, Told
from support.projects import NO_SPARK, Mill, a_project, sorted_rows
from support.random_pipelines import CLOCK, Drawn, draw, fed
from tidemill.core.errors import DeclarationError

pytestmark = pytest.mark.spark

SHORT, LONG = 8, 300


def read_back(mill: Mill) -> dict[str, list[dict[str, Any]]]:
    """All rows that readers see; the JSON of late rows as one reads it."""
    tables = mill.everything()
    late = [{**row, "row": json.loads(row["row"], parse_float=Decimal)} for row in tables["late"]]
    return {**tables, "late": sorted_rows(late)}


def missed_by(mill: Mill, commit: Any) -> Counter[tuple[str, int]]:
    """How many records each window missed, by table and start."""
    found, sinks = Counter[tuple[str, int]](), {s.table: s for s in mill.project.pipeline(mill.name).sinks}
    for table, spans in (commit.missed or {}).items():
        panes = sinks[table].window.panes
        for span in spans:
            first, last = panes.number_of(span.first), panes.number_of(span.last)
            assert panes.window(first).start == span.first
            assert panes.window(last).start == span.last >= span.first
            found.update({(table, panes.window(n).start): span.records for n in range(first, last + 1)})
    return found


def told_by(commit: Any) -> Told:
    """What a commit says, as the oracle says it; without what each window missed."""
    account, at = commit.accounts["events"], commit.position.topics["events"]
    names = ("read", "aggregated", "filtered", "rejected", "late")
    told = Told(refused=commit.refused_windows, watermark=commit.position.watermark)
    told.account.update({name: getattr(account, name) for name in names})
    told.warned = (commit.warned or {}).get("events", {}).get("odd", 0)
    told.reasons.update(commit.reasons)
    told.published.update(commit.published)
    told.clocks = {partition: (clock.max_event_time, clock.mark) for partition, clock in at.clocks.items()}
    return told


def check(drawn: Drawn, batches: Sequence[Sequence[list[bytes | None]]], folder: Path, spark: Any) -> None:
    """Run batches of a pipeline, and compare each of them with the oracle."""
    mill = Mill(a_project(folder, drawn.pipeline, drawn.contracts), spark, "drawn")
    mill.log.create_topic("events", partitions=2)
    [source] = mill.project.pipeline("drawn").inputs
    oracle = Oracle(drawn=drawn, contract=source.contract)
    for number, values in enumerate(batches, start=1):
        for partition, part in enumerate(values):
            mill.feed(part, partition=partition)
        drain = number == len(batches)
        before = oracle.tables
        try:
            told = oracle.run(values, drain=drain)
        except Overflow:
            with pytest.raises(DeclarationError, match="overflow"):
                mill.run(clock=CLOCK, drain=drain)
            assert read_back(mill) == before
            return
        commit = mill.run(clock=CLOCK, drain=drain)
        assert replace(told_by(commit), missed=missed_by(mill, commit)) == told
        assert read_back(mill) == oracle.tables


@pytest.mark.parametrize(
    "seed", [*range(SHORT), *(pytest.param(n, marks=pytest.mark.long) for n in range(SHORT, LONG))]
)
def test_batches_give_what_the_oracle_says(tmp_path: Path, request: pytest.FixtureRequest, seed: int) -> None:
    drawn = draw(random.Random(seed))
    # Only where a number may overflow, Spark is asked what to say.
    check(drawn, fed(seed), tmp_path, request.getfixturevalue("spark") if drawn.may_fail else NO_SPARK)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 60))])
def test_batches_that_only_spark_computes_give_what_the_oracle_says(tmp_path: Path, spark: Any, seed: int) -> None:
    check(draw(random.Random(seed), wide=True), fed(seed, wide=True), tmp_path, spark)
