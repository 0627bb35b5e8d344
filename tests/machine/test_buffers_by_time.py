"""Buffers in order of event time, through the whole protocol on the tiny engine: however partitions and batches lie."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from machine.conftest import again
from machine.told import USERS, Told, disturbed, places_of, shown
from support.commands import type_command
from support.firings import firings
from support.ordered import Batch, Record
from support.ordered_oracle import buffered_by_time
from support.projects import NO_SPARK, NOW, Mill, an_event
from support.short_forms import shortened
from tidemill import CountPolicy, DeltaPolicy, PunctuationPolicy, SlidingBuffer, TimePolicy, TumblingBuffer
from tidemill.core.errors import TidemillError
from tidemill.core.ordered.records import Moment
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import OfOffsets, OfWindows
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.time.times import micros
from tidemill.inspect.service_levels import service_levels
from tidemill.repair.backfill import backfill
from tidemill.repair.rebuild import rebuild
from tidemill.repair.repair import repair

pytestmark = pytest.mark.usefixtures("tiny", "early_maintenance")

BY_TIME = 'order="event_time"'
BUFFERS = {
    f"TumblingBuffer(CountPolicy(3), {BY_TIME})": TumblingBuffer(CountPolicy(3)),
    f"TumblingBuffer(DeltaPolicy('amount', 4), {BY_TIME})": TumblingBuffer(DeltaPolicy("amount", 4)),
    f"TumblingBuffer(PunctuationPolicy('marker'), {BY_TIME})": TumblingBuffer(PunctuationPolicy("marker")),
    f"SlidingBuffer(CountPolicy(4), CountPolicy(2), {BY_TIME})": SlidingBuffer(CountPolicy(4), CountPolicy(2)),
    f"SlidingBuffer(DeltaPolicy('amount', 3), {BY_TIME})": SlidingBuffer(DeltaPolicy("amount", 3)),
    f"SlidingBuffer(TimePolicy('6 s'), DeltaPolicy('amount', 2), {BY_TIME})": SlidingBuffer(
        TimePolicy("6 s"), DeltaPolicy("amount", 2)
    ),
}
SLIDING = f"SlidingBuffer(CountPolicy(3), {BY_TIME})"


def a_pipeline(folder: Path, window: str = SLIDING, **more: Any) -> Mill:
    return firings(folder, NO_SPARK, window, collect=False, **more)


def expected(told: Told, declared: TumblingBuffer | SlidingBuffer) -> list[tuple[str, int, int | None]]:
    """What the plain rule gives: of records with one time, the one in the lesser place of the log is first."""
    found, marked = [], isinstance(getattr(declared, "flush", None), PunctuationPolicy)
    where = {id(event): ("events", p, n) for p, events in told.log.items() for n, event in enumerate(events)}
    for user in USERS:
        batches, first = list[Batch](), 0
        amounts = [event.amount for event in told.order if event.user == user]
        for until, watermark in told.after:
            own = [event for event in told.order[first:until] if event.user == user]
            records = [
                Record(micros(NOW) + e.second * 1_000_000, e.amount, marked and e.amount == -1, where[id(e)])
                for e in own
            ]
            batches.append(Batch(records, Moment(watermark)))
            first = until
        for fires in buffered_by_time(declared, batches, Moment()) if batches else ():
            found.append((user, len(fires), sum(amounts[i] for i in fires) if fires else None))
    return sorted(found, key=str)


@pytest.mark.parametrize(
    ("text", "seed"), shortened(product(BUFFERS, range(4)), [(text, 0) for text in list(BUFFERS)[2:4]])
)
def test_firings_are_those_of_the_sorted_records_whatever_is_done_to_the_batches(
    tmp_path: Path, text: str, seed: int
) -> None:
    mill = a_pipeline(tmp_path, text, partitions=2, delay="4 s")
    draw, places, told = random.Random(f"{text}{seed}"), places_of(mill), Told(mill, disorder=9)
    for _ in range(8):
        told.feed(draw)
        disturbed(told, draw, places, told.run)
        told.run()
        assert shown(mill) == expected(told, BUFFERS[text])
    assert shown(mill)


def test_records_wait_for_the_watermark_and_are_taken_by_time_then_place(tmp_path: Path) -> None:
    mill = a_pipeline(tmp_path, partitions=2, delay="5 s")
    mill.feed([an_event(3, amount=400), an_event(1, amount=10)], partition=1)
    mill.feed([an_event(3, amount=3)], partition=0)
    mill.run()
    assert mill.published() == []
    for partition in (0, 1):
        mill.feed([an_event(9, user="b")], partition=partition)
    mill.run()
    assert shown(mill) == [("a", 1, 10), ("a", 2, 13), ("a", 3, 413)]


@pytest.mark.parametrize("seed", shortened(range(6), range(1)))
def test_batches_of_any_size_give_the_same_rows_also_of_two_partitions(tmp_path: Path, seed: int) -> None:
    draw, made = random.Random(seed), list[Mill]()
    log = [
        (draw.randint(0, 1), an_event(second + draw.randint(-4, 0), draw.choice("ab"), 2**second % 99_991))
        for second in range(40)
    ]
    for size in (40, 7, 3):
        mill = a_pipeline(tmp_path / str(size), partitions=2, delay="10 s")
        for at in range(0, len(log), size):
            for partition, event in log[at : at + size]:
                mill.feed([event], partition=partition)
            mill.run()
        mill.run(drain=True)
        made.append(mill)
    assert shown(made[0]) == shown(made[1]) == shown(made[2])
    assert len(shown(made[0])) == 40


def test_what_comes_behind_the_watermark_is_late_and_has_no_window(tmp_path: Path) -> None:
    mill = a_pipeline(tmp_path)
    mill.feed([an_event(10)])
    mill.run()
    mill.feed([an_event(9, amount=7), an_event(10, amount=8), an_event(12)])
    commit = mill.run()
    assert commit.accounts["events"].late == 1
    [row] = mill.own("late")
    assert (row["offset"], row["window_start"], row["window_end"]) == (1, None, None)
    assert shown(mill) == [("a", 1, 1), ("a", 2, 9)]


def test_the_end_of_the_log_lets_all_records_in_and_then_everything_is_late(tmp_path: Path) -> None:
    mill = a_pipeline(tmp_path, f"TumblingBuffer(PunctuationPolicy('marker'), {BY_TIME})", delay="1 hour")
    mill.feed([an_event(2, amount=2), an_event(1, amount=1)])
    mill.run()
    mill.run(drain=True)
    assert shown(mill) == [("a", 2, 3)]
    mill.feed([an_event(3)])
    assert mill.run().accounts["events"].late == 1


def test_a_backfill_takes_records_in_the_same_order(tmp_path: Path) -> None:
    mill, draw = a_pipeline(tmp_path, delay="3 s", partitions=2), random.Random(7)
    for second in range(0, 24, 4):
        for n in range(6):
            mill.feed([an_event(second + draw.randint(-3, 3), "ab"[n % 2], 2 ** (second % 16) + n)], partition=n % 2)
        mill.run()
    before = shown(mill)
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert shown(mill) == before
    assert len(before) > 20


def test_a_rebuild_with_other_batches_gives_the_same_rows(tmp_path: Path) -> None:
    mill, draw = a_pipeline(tmp_path, delay="6 s", partitions=2), random.Random(3)
    for second in range(0, 30, 3):
        for n in range(4):
            mill.feed([an_event(second + draw.randint(-3, 3), "ab"[n % 2], 2 ** (second % 16) + n)], partition=n // 2)
        mill.run()
    before = shown(mill)
    done(rebuild(an_amendment(mill, most=7)))
    assert shown(again(mill)) == before
    assert len(before) > 20


def test_a_record_that_is_let_in_counts_in_its_turn(tmp_path: Path) -> None:
    mill = a_pipeline(tmp_path, delay="5 s")
    mill.feed([an_event(1, amount=2_000_000), an_event(8, amount=3_000_000), an_event(9)])
    mill.run()
    contract = tmp_path / "data_contracts" / "events.odcs.yaml"
    contract.write_text(contract.read_text().replace("maximum: 1000000", "maximum: 3000000"))
    mill = again(mill)
    done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    assert mill.own("late") == []
    mill.feed([an_event(20)])
    mill.run()
    assert shown(mill) == [("a", 1, 2_000_000), ("a", 2, 5_000_000), ("a", 3, 5_000_001)]


def test_no_window_of_time_says_which_batches_a_backfill_needs(tmp_path: Path) -> None:
    mill = a_pipeline(tmp_path)
    mill.feed([an_event(1), an_event(5)])
    mill.run()
    with pytest.raises(TidemillError, match="depends on all records of its key before it"):
        done(backfill(an_amendment(mill), OfWindows(since=NOW, until=NOW + timedelta(seconds=9))))


def test_another_order_is_another_meaning(tmp_path: Path) -> None:
    mill = a_pipeline(tmp_path)
    mill.feed([an_event(1), an_event(5)])
    mill.run()
    path = mill.project.folder / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace(f", {BY_TIME}", ""))
    with pytest.raises(TidemillError, match="window"):
        again(mill).run()


def test_a_table_whose_records_wait_is_as_fresh_as_the_watermark_and_explain_says_the_order(tmp_path: Path) -> None:
    mill = a_pipeline(tmp_path, delay="30 s")
    told = type_command(tmp_path, "explain", "firings", "--json")
    assert "sliding, evict by count 3, trigger by count 1, in order of event time" in told.out, told
    contract = tmp_path / "data_contracts" / "firings.odcs.yaml"
    contract.write_text(f"{contract.read_text()}slaProperties:\n  - {{property: freshness, value: 1, unit: min}}\n")
    mill = again(mill)
    mill.feed([an_event(100)])
    mill.run()
    view, flow = mill.project.ledger("firings").view(), mill.project.pipeline("firings")
    [level] = service_levels(flow, view, NOW + timedelta(seconds=140))
    assert level.measured == 70_000_000
