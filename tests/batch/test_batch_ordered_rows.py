"""What the field tests of buffers, evictors, triggers and accumulation, on Spark: one case for each row of the list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batch.test_batch_buffers import checked
from support.firings import feed, fired, firings
from support.projects import Mill, an_event, rows_of
from support.short_forms import crossed
from support.writers import WRITERS
from tidemill.core.errors import DeclarationError

pytestmark = pytest.mark.spark

HOUR = 'Tumbling("1 hour")'
COUNTED = [5, 8, 3, 15, 19, 23, 9, 13, 10]


def told(mill: Mill, batches: list[list[int]]) -> list[list[int]]:
    """What fires of these amounts, which are the seconds of their events, too; nothing of it is late."""
    for amounts in batches:
        feed(mill, amounts)
        mill.run()
    return fired(mill).get("a", [])


@pytest.mark.parametrize(
    ("window", "batches", "expected"),
    [
        pytest.param(
            "SlidingBuffer(CountPolicy(3))",
            [[1, 2], [3], [4]],
            [[1], [1, 2], [1, 2, 3], [2, 3, 4]],
            id="row 23",
        ),
        pytest.param(
            "TumblingBuffer(CountPolicy(5))",
            [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]],
            [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]],
            id="row 24",
        ),
        pytest.param(
            "SlidingBuffer(CountPolicy(5), CountPolicy(2))",
            [[0, 1, 2], [3, 4, 5, 6]],
            [[0, 1], [0, 1, 2, 3], [1, 2, 3, 4, 5]],
            id="row 25",
        ),
        pytest.param(
            "TumblingBuffer(DeltaPolicy('amount', 2))",
            [[0, 1, 2, 3], [4, 5, 6, 7]],
            [[0, 1, 2], [3, 4, 5]],
            id="row 26",
        ),
        pytest.param(
            "TumblingBuffer(DeltaPolicy('amount', 15))",
            [[160, 164], [171, 176]],
            [[160, 164, 171]],
            id="row 26, tenths",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "SlidingBuffer(CountPolicy(5), DeltaPolicy('amount', 2))",
            [[0, 1, 2, 3, 4], [5, 6, 7, 8]],
            [[0, 1, 2], [1, 2, 3, 4, 5]],
            id="row 27, trigger",
        ),
        pytest.param(
            "SlidingBuffer(DeltaPolicy('amount', 2), CountPolicy(5))",
            [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9, 10]],
            [[2, 3, 4], [7, 8, 9]],
            id="row 27, eviction",
            marks=pytest.mark.long,
        ),
    ],
)
def test_rows_23_to_27_of_buffers(
    tmp_path: Path, spark: Any, window: str, batches: list[list[int]], expected: list[list[int]]
) -> None:
    assert told(firings(tmp_path, spark, window), batches) == expected


@pytest.mark.parametrize(
    ("evictor", "amounts", "expected"),
    [
        ("CountEvictor(3)", [1, 2, 3, 4, 5], [3, 4, 5]),
        ("TimeEvictor('10 s')", [0, 9, 10, 20], [10, 20]),
        pytest.param("DeltaEvictor('amount', 2)", [1, 2, 3, 4], [3, 4], marks=pytest.mark.long),
        ("CountEvictor(3, after=True)", [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
    ],
)
def test_row_34_evictors_leave_records_out_before_or_after_the_firing(
    tmp_path: Path, spark: Any, evictor: str, amounts: list[int], expected: list[int]
) -> None:
    window = f"{HOUR}, evictor={evictor}"
    mill = firings(tmp_path, spark, window, trigger="trigger=AfterWatermark()", bounds=True)
    assert told(mill, [amounts, [3600]]) == [expected]


def test_row_35_a_trigger_that_is_finished_drops_what_follows_and_the_commit_counts_it(
    tmp_path: Path, spark: Any
) -> None:
    trigger = "trigger=AfterAny(AfterCount(2), AfterWatermark())"
    with pytest.raises(DeclarationError, match=r"can finish while its window still takes records"):
        firings(tmp_path / "refused", spark, HOUR, trigger=trigger, bounds=True).project.pipeline("firings")
    mill = firings(tmp_path, spark, HOUR, trigger=f"{trigger}, accept_loss=True", bounds=True)
    feed(mill, [1, 2])
    assert mill.run().refused_windows == 0
    feed(mill, [3])
    assert mill.run().refused_windows == 1
    assert told(mill, [[3600]]) == [[1, 2]]
    checked(mill)


FIRED = {
    "discarding": [sorted(COUNTED[:3]), sorted(COUNTED[3:6]), sorted(COUNTED[6:])],
    "accumulating": [sorted(COUNTED[:3]), sorted(COUNTED[:6]), sorted(COUNTED)],
}


@pytest.mark.parametrize(("mode", "cuts"), crossed(FIRED, [[9], [2, 7, 9]]))
def test_rows_49_and_50_discarding_and_accumulating(tmp_path: Path, spark: Any, mode: str, cuts: list[int]) -> None:
    expected = FIRED[mode]
    said = f'trigger=Repeatedly(AfterCount(3)), accumulation="{mode}", index="nth"'
    mill = firings(tmp_path, spark, HOUR, trigger=said, delay="1 hour", bounds=True)
    batches = [COUNTED[a:b] for a, b in zip([0, *cuts], cuts, strict=False)]
    assert sorted(told(mill, batches)) == sorted(expected)
    found = sorted(rows_of(mill.project.published_uri("firings")), key=lambda row: row["nth"])
    assert [row["amount"] for row in found] == [sum(each) for each in expected]
    checked(mill)


@pytest.mark.parametrize("writer", WRITERS)
def test_row_51_firings_that_take_earlier_ones_back_add_up(tmp_path: Path, spark: Any, writer: str) -> None:
    said = 'trigger=AfterWatermark(early=AfterCount(1), late=AfterCount(1)), operation="operation", index="nth", '
    said += 'timing="timing", accumulation="accumulating_and_retracting"'
    mill = firings(
        tmp_path, spark, 'Tumbling("10 s")', trigger=said, lateness="1 hour", delay="0 s", bounds=True, writer=writer
    )
    for amounts in ([7], [8], [5]):
        mill.feed([an_event(1, "a", amount) for amount in amounts])
        mill.run()
    mill.feed([an_event(100, "b", 1)])
    mill.run()
    mill.feed([an_event(2, "a", 10)])
    mill.run()
    rows = sorted(rows_of(mill.project.published_uri("firings")), key=lambda row: (row["nth"], row["operation"]))
    of_a = [(r["operation"], r["amount"], r["timing"]) for r in rows if r["user"] == "a"]
    assert of_a == [
        ("insert", 7, "EARLY"),
        ("delete", 7, "EARLY"),
        ("insert", 15, "EARLY"),
        ("delete", 15, "EARLY"),
        ("insert", 20, "EARLY"),
        ("delete", 20, "ON_TIME"),
        ("insert", 20, "ON_TIME"),
        ("delete", 20, "LATE"),
        ("insert", 30, "LATE"),
    ]
    net = dict.fromkeys(("a", "b"), 0)
    for row in rows:
        net[row["user"]] += row["amount"] if row["operation"] == "insert" else -row["amount"]
    assert net == {"a": 30, "b": 1}
    checked(mill)


def test_row_52_how_firings_relate_must_be_said_where_a_window_may_fire_twice(tmp_path: Path, spark: Any) -> None:
    mill = firings(tmp_path, spark, HOUR, trigger="trigger=Repeatedly(AfterCount(3))", bounds=True)
    with pytest.raises(DeclarationError, match=r"it is not said how its firings relate"):
        mill.project.pipeline("firings")
