"""Windows with triggers through the whole protocol on the tiny engine, against the plain rule of `ordered_oracle`."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from machine.told import Told, added, disturbed, fired, places_of
from support.firings import firings
from support.projects import NO_SPARK, TOTALS_CONTRACT, Mill, an_event
from support.short_forms import crossed
from tidemill import AfterCount, AfterWatermark, Calendar, Never, Repeatedly, Sliding, Tumbling
from tidemill.core.errors import Incompatible
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.plan.amendments import Reason
from tidemill.core.time.times import micros

pytestmark = pytest.mark.usefixtures("tiny", "early_maintenance")

WINDOWS = {
    "Tumbling('10 s')": Tumbling("10 s"),
    "Sliding('12 s', '5 s')": Sliding("12 s", "5 s"),
    "Calendar('day')": Calendar("day"),
}
TRIGGERS = {
    "Repeatedly(AfterCount(3))": Repeatedly(AfterCount(3)),
    "AfterWatermark(early=AfterCount(2), late=AfterCount(1))": AfterWatermark(early=AfterCount(2), late=AfterCount(1)),
    "Never()": Never(),
}
MODES = ("discarding", "accumulating", "accumulating_and_retracting")


def expected(told: Told, declared: EventWindows) -> list[tuple[Any, ...]]:
    """User, start, timing, index, whether it is the last one, operation, count and sum of each row."""
    found = []
    for user, amounts, each in fired(told, declared):
        taken = [("delete", window, numbers) for window, numbers in each.retracts]
        for operation, window, numbers in [*taken, ("insert", each.window, each.records)]:
            rest = (each.timing.value, each.index, each.is_last, operation, *added(amounts, numbers))
            found.append((user, window.start, *rest))
    return sorted(found, key=str)


def shown(mill: Mill) -> list[tuple[Any, ...]]:
    rows = [
        (r["user"], micros(r["window_start"]), r["timing"], r["nth"], r["last"], r["operation"], r["n"], r["amount"])
        for r in mill.published()
    ]
    return sorted(rows, key=str)


def with_trigger(folder: Path, window: str, trigger: str, mode: str, *, lateness: str) -> tuple[Mill, EventWindows]:
    """A pipeline whose firings say all that they know, and its plain rule."""
    columns = 'timing="timing", index="nth", last="last", operation="operation"'
    mill = firings(
        folder,
        NO_SPARK,
        window,
        trigger=f'trigger={trigger}, accumulation="{mode}", {columns}',
        lateness=lateness,
        delay="4 s",
        partitions=2,
        bounds=True,
        collect=False,
    )
    return mill, EventWindows(WINDOWS[window].panes, TRIGGERS[trigger], lateness, mode)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize(("window", "trigger", "mode"), crossed(WINDOWS, TRIGGERS, MODES))
def test_firings_are_those_of_the_plain_rule_whatever_is_done_to_the_batches(
    tmp_path: Path, window: str, trigger: str, mode: str, seed: int
) -> None:
    draw = random.Random(f"{window}{trigger}{mode}{seed}")
    mill, declared = with_trigger(tmp_path, window, trigger, mode, lateness=draw.choice(["0 s", "8 s"]))
    told, places = Told(mill, disorder=12), places_of(mill)
    for _ in range(6):
        told.feed(draw)
        disturbed(told, draw, places, told.run)
        told.run()
        assert shown(mill) == expected(told, declared)


ADDED = """
    events.window(WINDOW).aggregate(n=Count(), amount=Sum("amount")).publish("firings", contract="firings"TRIGGER)
"""
BOTH = """
from tidemill import *

with Pipeline("firings", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts").filter("coalesce(user, '') != 'nobody'")
    events = events.with_columns(user="coalesce(user, 'unknown')").key_by("user")
    events.aggregate(n=Count(), amount=Sum("amount")).publish("totals", contract="totals")
"""


@pytest.mark.parametrize(
    ("window", "trigger", "refused"),
    [
        ('Tumbling("10 s")', ", trigger=AfterWatermark()", True),
        ("TumblingBuffer(CountPolicy(2))", "", False),
    ],
)
def test_a_table_that_joins_never_publishes_a_window_that_lacks_records(
    tmp_path: Path, window: str, trigger: str, refused: bool
) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2))", bounds=refused, collect=False)
    (tmp_path / "data_contracts" / "totals.odcs.yaml").write_text(TOTALS_CONTRACT)
    path = tmp_path / "pipelines" / "pipeline.py"
    path.write_text(BOTH)
    mill = Mill(mill.project.load(tmp_path), NO_SPARK, "firings")
    mill.feed([an_event(1)])
    mill.run()
    path.write_text(BOTH + ADDED.replace("WINDOW", window).replace("TRIGGER", trigger))
    mill = Mill(mill.project.load(tmp_path), NO_SPARK, "firings")
    mill.feed([an_event(second) for second in (2, 15, 30)])
    decided = Reason(by="ana", why="more")
    if refused:
        with pytest.raises(Incompatible, match="its first windows would lack records"):
            mill.run(from_now=decided)
    else:
        mill.run(from_now=decided)
        assert [(r["n"], r["amount"]) for r in mill.published("firings")] == [(2, 2)]
