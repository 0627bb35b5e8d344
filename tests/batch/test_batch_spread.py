"""What a row of state is for: the same, whether the driver finds it out node by node or Spark row by row."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.projects import sums
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.time.pane_tree import PaneTree
from tidemill.core.time.times import moment
from tidemill.core.time.trigger import Trigger
from tidemill.engine.aggregate.firing import Firing
from tidemill.engine.publish.merged_ahead import Ahead
from tidemill.engine.spark.session import Spark
from tidemill.engine.storage import spread as spread_of_rows
from tidemill.engine.storage.row_writers import DriverWriter
from tidemill.engine.storage.spark_writer import SparkWriter

pytestmark = pytest.mark.spark

SECOND = 1_000_000


def an_ahead(sink: WindowedSink, chance: random.Random) -> Ahead:
    before = chance.randrange(-40, 40) * SECOND
    after = before + chance.choice([0, 0, 1, 2, 30]) * SECOND
    lateness = chance.choice([None, 0, 7 * SECOND, 60 * SECOND])
    firing = Firing(trigger=chance.choice([*Trigger]), before=before, after=after, allowed_lateness=lateness)
    since = before - chance.randrange(-5, 60) * SECOND
    tree = PaneTree(panes=sink.window.panes, since=since, built=before)
    return Ahead(sink=sink, firing=firing, tree=tree, until=max(before, after))


def rows_of_every_node(ahead: Ahead, chance: random.Random, copies: int) -> pa.Table:
    """Rows of panes and of the nodes that are there, in any order, each known by what it counts."""
    tree, panes = ahead.tree, ahead.tree.panes
    times = range(-100 * SECOND, 100 * SECOND, panes.pane)
    nodes = {tree.node_of(t + panes.offset, level) for t in times for level in range(tree.levels + 1)}
    there = [n for n in nodes if tree.has(n)]
    rows = [(n, alone) for n in there for alone in ((False, True) if n.level == 0 else (False,))]
    rows *= copies
    chance.shuffle(rows)
    number = pa.array(range(len(rows)), pa.int64())
    state = dict.fromkeys(("n__value", "amount__value", "amount__n", "amount__high", "amount__low"), number)
    columns = {
        "pane_level": pa.array([n.level for n, _ in rows], pa.int32()),
        "pane_start": pa.array([moment(n.start) for n, _ in rows], pa.timestamp("us", "UTC")),
        "user": pa.array([chance.choice(["a", None]) for _ in rows]),
        **state,
        "_touched": pa.array([chance.random() < 0.5 for _ in rows]),
        "_alone": pa.array([alone for _, alone in rows]),
    }
    return pa.table(columns)


@pytest.mark.parametrize("rounds", [2, pytest.param(6, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("window", "copies"),
    [
        ('Sliding("20 seconds", "1 second", offset="500 ms")', 1),
        ('Sliding("21 s", "2 s")', 1),
        ('Sliding("9 s", "1 s")', 8),
    ],
)
def test_driver_and_spark_spread_rows_alike(  # noqa: PLR0917
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, window: str, copies: int, rounds: int
) -> None:
    # So that rows of one node are put together first, as when there are many.
    monkeypatch.setattr(spread_of_rows, "_RUN", copies // 2 or 1_000)
    [sink] = sums(tmp_path, spark, window=window).project.pipeline("sums").sinks
    assert isinstance(sink, WindowedSink)
    chance, driver = random.Random(3), DriverWriter(Spark.of(spark))
    seen = 0
    for _ in range(rounds):
        ahead = an_ahead(sink, chance)
        rows = rows_of_every_node(ahead, chance, copies)
        for bounds in (ahead.bounds, ahead.first_nodes, ahead.from_nodes):
            spread = ahead.spread(bounds)
            ours = driver.spread([rows], spread)
            theirs = (
                SparkWriter(Spark.of(spark)).spread([driver.frame([rows])], spread).toArrow().select(ours.column_names)
            )
            by = [(name, "ascending") for name in ("n__value", "_level", "_start")]
            assert ours.sort_by(by).to_pylist() == theirs.sort_by(by).to_pylist()
            seen += ours.num_rows
    assert seen > 80 * rounds
