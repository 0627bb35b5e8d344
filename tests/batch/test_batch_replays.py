"""Backfills of tables of firings on Spark: as if the present declaration had read the log at the batches of then."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from batch.test_batch_buffers import checked
from support.firings import fired, firings
from support.projects import NOW, Mill, an_event
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.engine.read import typed_rows
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair

pytestmark = pytest.mark.spark

TOLD = 'timing="timing", index="nth", last="last", operation="operation"'
EARLY = "AfterWatermark(early=AfterCount(2), late=AfterCount(1))"
RETRACTING = f'trigger={EARLY}, accumulation="accumulating_and_retracting", {TOLD}'
KINDS = {
    "TumblingBuffer(CountPolicy(3))": "",
    "SlidingBuffer(CountPolicy(4), CountPolicy(2))": "",
    "SlidingBuffer(CountPolicy(4), CountPolicy(2), most_keys=1)": "",
    "TumblingBuffer(DeltaPolicy('amount', 4))": "",
    "SlidingBuffer(CountPolicy(3), order='event_time')": "",
    "TumblingBuffer(DeltaPolicy('amount', 4), order='event_time')": "",
    "TumblingBuffer(TimePolicy('10 s'), emit_empty=True)": "",
    "Tumbling('10 s')": RETRACTING,
    "Session('5 s')": RETRACTING,
    "RecordWindows('5 s')": "",
    "Global()": f'trigger=Repeatedly(AfterCount(3)), accumulation="discarding", {TOLD}',
}


def since(offset: int, partition: int = 0) -> OfOffsets:
    place = TopicPartition("events", partition)
    return OfOffsets(since={place: offset}, until={place: offset + 1})


def counting_nobody(mill: Mill) -> Mill:
    """The pipeline once its filter leaves nobody out."""
    path = mill.project.folder / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace("!= 'nobody'", "!= 'z'"))
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)


def test_a_changed_filter_holds_for_all_firings_after_a_backfill_and_verify_compares_them(
    tmp_path: Path, spark: Any
) -> None:
    mill = firings(tmp_path, spark, "TumblingBuffer(CountPolicy(3))")
    for at in range(0, 6, 2):
        mill.feed([an_event(at, "a", at), b"{cut", an_event(at, "nobody", at), an_event(at + 1, "a", at + 1)])
        mill.run()
    mill = counting_nobody(mill)
    mill.feed([an_event(10, "nobody", 10)])
    mill.run(from_now=Reason(by="ana", why="nobody counts"))
    [commit] = done(backfill(an_amendment(mill, most=1), since(9)))
    assert (commit.accounts["events"].read, commit.accounts["events"].rejected) == (13, 3)
    assert fired(mill) == {"a": [[0, 1, 2], [3, 4, 5]], "nobody": [[0, 2, 4]]}
    assert len(mill.own("quarantine")) == 3
    checked(mill)
    mill.feed([an_event(11, "nobody", 11), an_event(12, "nobody", 12)])
    mill.run()
    assert fired(mill)["nobody"] == [[0, 2, 4], [10, 11, 12]]
    checked(mill)


def test_late_and_rejected_records_of_a_large_backfill_are_found_by_a_second_pass(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = 'trigger=Repeatedly(AfterCount(1)), accumulation="discarding"'
    mill = firings(tmp_path, spark, "Tumbling('10 s')", trigger=each, bounds=True)
    for seconds in ([1, 31], [2, 24, 33]):
        mill.feed([*(an_event(second, "a", second) for second in seconds), b"{cut"])
        mill.run()
    monkeypatch.setattr(typed_rows, "_HELD_RECORDS", 0)
    [commit] = done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    account = commit.accounts["events"]
    assert (account.read, account.late, account.rejected) == (7, 2, 2)
    assert [(r["offset"], r["watermark"]) for r in mill.own("late")] == [
        (offset, NOW + timedelta(seconds=33)) for offset in (3, 4)
    ]
    assert [row["offset"] for row in mill.own("quarantine")] == [2, 6]
    assert fired(mill) == {"a": [[1], [31], [33]]}
    checked(mill)


def cuts(draw: random.Random) -> Sequence[list[tuple[int, bytes]]]:
    """What each of some batches reads: partitions and events, some of them late and some rejected."""
    users = ("a", "b", "nobody")
    batches = []
    for number in range(3):
        events = [
            (draw.randint(0, 1), an_event(6 * number + draw.randint(-12, 6), draw.choice(users), draw.randint(1, 9)))
            for _ in range(draw.randint(4, 9))
        ]
        batches.append([*events, (0, b"{cut"), (1, an_event(6 * number, "a", 2_000_000 + number))])
    return batches


def told(mill: Mill, batches: Sequence[list[tuple[int, bytes]]], **more: Any) -> None:
    for events in batches:
        for partition, event in events:
            mill.feed([event], partition=partition)
        mill.run(**more)


def seen(mill: Mill) -> dict[str, list[str]]:
    """All rows that readers can see, without when and by which watermark they were put aside."""
    left_out = {"recorded_at", "watermark"}
    tables = mill.everything().items()
    return {t: sorted(str({c: v for c, v in r.items() if c not in left_out}) for r in rows) for t, rows in tables}


@pytest.mark.long
@pytest.mark.parametrize(
    ("window", "writer"),
    [
        *((window, "delta-rs") for window in KINDS),
        ("TumblingBuffer(CountPolicy(3))", "spark"),
        ("Tumbling('10 s')", "spark"),
    ],
)
def test_a_backfill_gives_what_the_present_declaration_would_have_given_batch_by_batch(
    tmp_path: Path, spark: Any, window: str, writer: str
) -> None:
    trigger = KINDS[window]
    more = {"trigger": trigger, "delay": "2 s", "partitions": 2, "writer": writer}
    more |= {"lateness": "4 s"} if trigger and window != "Global()" else {}
    more["bounds"] = not any(kind in window for kind in ("Count", "Delta", "Global"))
    draw = random.Random(window.replace(", most_keys=1", ""))
    first, [second, third, *_] = cuts(draw), cuts(draw)
    mill = firings(tmp_path / "mill", spark, window, **more)
    told(mill, first)
    done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection(partition=1)))
    mill = counting_nobody(mill)
    told(mill, [second], from_now=Reason(by="ana", why="nobody counts"))
    done(backfill(an_amendment(mill), since(2)))
    other = counting_nobody(firings(tmp_path / "other", spark, window, **more))
    told(other, [*first, second])
    assert seen(mill) == seen(other)
    told(mill, [third])
    told(other, [third])
    assert seen(mill) == seen(other)
    checked(mill)
