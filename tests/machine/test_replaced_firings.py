"""Firings that update the row of the firing before, through the whole protocol, against the plain rule."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from machine.told import Told, added, disturbed, fired, places_of
from support.firings import firings
from support.projects import NO_SPARK, NOW, Mill, an_event, rows_of
from support.short_forms import crossed, shortened
from tidemill import AfterCount, AfterWatermark, Global, Never, Repeatedly, Sliding, Tumbling
from tidemill.core.errors import OffsetsLost
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.time.times import micros
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair

pytestmark = pytest.mark.usefixtures("tiny", "early_maintenance")

WINDOWS = {
    "Tumbling('10 s')": Tumbling("10 s").panes,
    "Sliding('12 s', '5 s')": Sliding("12 s", "5 s").panes,
    "Global()": Global().panes,
}
TRIGGERS = {
    "Repeatedly(AfterCount(2))": Repeatedly(AfterCount(2)),
    "AfterWatermark(early=AfterCount(2), late=AfterCount(1))": AfterWatermark(early=AfterCount(2), late=AfterCount(1)),
    "Never()": Never(),
}
CROSSED = [c for c in crossed(WINDOWS, TRIGGERS) if not (c.values[0] == "Global()" and "late=" in c.values[1])]
REPLACING = "accumulating_and_replacing"
ALL = OfOffsets(since={}, until={})


def expected(told: Told, declared: EventWindows) -> list[tuple[Any, ...]]:
    """Of each user and window the newest firing."""
    found = dict[tuple[str, int], tuple[Any, ...]]()
    for user, amounts, each in fired(told, declared):
        told_of = (each.timing.value, each.index, each.is_last)
        found[user, each.window.start] = (*told_of, *added(amounts, each.records))
    return sorted(((*key, *row) for key, row in found.items()), key=str)


def shown(mill: Mill) -> list[tuple[Any, ...]]:
    everything = WINDOWS["Global()"].windows_of(0)[0].start
    found = []
    for row in mill.published():
        start = micros(row["window_start"]) if "window_start" in row else everything
        found.append((row["user"], start, *(row[name] for name in ("timing", "nth", "last", "n", "amount"))))
    return sorted(found, key=str)


def replaced(folder: Path, window: str, trigger: str, mode: str = REPLACING, **more: Any) -> Mill:
    """A pipeline whose firings update rows."""
    told = f'trigger={trigger}, accumulation="{mode}", timing="timing", index="nth", last="last"'
    more = {"delay": "4 s", "partitions": 2, "bounds": window != "Global()", "collect": False, **more}
    return firings(folder, NO_SPARK, window, trigger=told, **more)


@pytest.mark.parametrize("seed", shortened(range(6), [0]))
@pytest.mark.parametrize(("window", "trigger"), CROSSED)
def test_each_window_has_the_row_of_its_newest_firing_whatever_is_done_to_the_batches(
    tmp_path: Path, window: str, trigger: str, seed: int
) -> None:
    draw = random.Random(f"{window}{trigger}{seed}")
    lateness = "0 s" if window == "Global()" else draw.choice(["0 s", "8 s"])
    mill = replaced(tmp_path, window, trigger, lateness=lateness)
    declared = EventWindows(WINDOWS[window], TRIGGERS[trigger], lateness, "accumulating")
    told, places = Told(mill, disorder=12), places_of(mill)
    for turn in range(6):
        told.feed(draw)
        disturbed(told, draw, places, told.run)
        told.run()
        assert shown(mill) == expected(told, declared)
        if turn == 3 and told.order:
            done(backfill(an_amendment(mill), ALL))
            assert shown(mill) == expected(told, declared)


@pytest.mark.parametrize(("trigger", "seed"), crossed(TRIGGERS, range(3)))
def test_sessions_that_merge_leave_the_rows_that_retractions_leave(tmp_path: Path, trigger: str, seed: int) -> None:
    draw, options = random.Random(f"{trigger}{seed}"), {"lateness": "8 s"}
    mill = replaced(tmp_path / "one", "Session('3 s')", trigger, **options)
    other = replaced(
        tmp_path / "other",
        "Session('3 s')",
        f'{trigger}, operation="operation"',
        "accumulating_and_retracting",
        **options,
    )
    left, second = Counter[tuple[Any, ...]](), 0
    for _ in range(8):
        second += draw.randint(0, 8)
        events = [an_event(second + draw.randint(-9, 4), draw.choice("ab"), draw.randint(1, 9)) for _ in range(5)]
        for each in (mill, other):
            each.feed(events)
            each.run()
    for row in other.published():
        left[_session(row)] += 1 if row["operation"] == "insert" else -1
    assert Counter(_session(row) for row in mill.published()) == +left
    assert set(left.values()) <= {0, 1}
    assert 0 in left.values() or "Never" in trigger


def _session(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("user", "window_start", "window_end", "n", "amount"))


def test_a_row_whose_newest_firing_does_not_meet_the_filter_is_removed(tmp_path: Path) -> None:
    mill = replaced(tmp_path, "Tumbling('10 s')", "Repeatedly(AfterCount(1))", delay="1 hour")
    path = tmp_path / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace(".publish(", '.filter("amount < 10").publish('))
    mill = Mill(mill.project.load(tmp_path), NO_SPARK, "firings")
    seen = []
    for amount in (4, 5, 6, -8):
        mill.feed([an_event(1, "a", amount)])
        mill.run()
        seen.append([(r["n"], r["amount"]) for r in mill.published()])
    assert seen == [[(1, 4)], [(2, 9)], [], [(4, 7)]]
    done(backfill(an_amendment(mill), ALL))
    assert [(r["n"], r["amount"]) for r in mill.published()] == [(4, 7)]


def test_totals_at_an_interval_are_one_row_for_each_key_or_for_all(tmp_path: Path) -> None:
    for keyed in (True, False):
        trigger = 'Repeatedly(AfterProcessingTime("1 minute"))'
        mill = replaced(tmp_path / str(keyed), "Global()", trigger, keyed=keyed)
        for second, expected in ((0, []), (30, []), (60, [(3, 6)]), (61, [(3, 6)]), (121, [(4, 10)])):
            if second < 121:
                amounts = {0: [1, 2], 30: [3], 60: [], 61: [4]}[second]
                mill.feed([an_event(second, "a", amount) for amount in amounts])
            mill.run(clock=NOW + timedelta(seconds=second))
            rows = mill.published() if mill.project.ledger("firings").exists else []
            assert [(r["n"], r["amount"]) for r in rows] == expected, second


@pytest.mark.parametrize("mode", ["accumulating", REPLACING])
def test_late_records_count_after_a_longer_lateness_and_a_backfill(tmp_path: Path, mode: str) -> None:
    told = f'trigger=AfterWatermark(late=AfterCount(1)), accumulation="{mode}", timing="timing"'
    mill = firings(tmp_path, NO_SPARK, "Tumbling('10 s')", trigger=told, bounds=True, collect=False)
    for events in ([an_event(1, "a", 1), an_event(20, "a", 2)], [an_event(3, "a", 4)]):
        mill.feed(events)
        mill.run()
    first, again = ("ON_TIME", 1, 1), ("LATE", 2, 5)
    assert ([row["offset"] for row in mill.own("late")], told_of(mill)) == ([2], [first])
    path = tmp_path / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace('allowed_lateness="0 s"', 'allowed_lateness="1 hour"'))
    mill = Mill(mill.project.load(tmp_path), NO_SPARK, "firings")
    mill.feed([an_event(21, "a", 8)])
    mill.run(from_now=Reason(by="ana", why="they come an hour late"))
    assert told_of(mill) == [first]
    done(backfill(an_amendment(mill), ALL))
    assert told_of(mill) == ([again] if mode == REPLACING else [again, first])
    assert mill.own("late") == []


def told_of(mill: Mill) -> list[tuple[str, int, int]]:
    return sorted((row["timing"], row["n"], row["amount"]) for row in mill.published())


def test_a_primary_key_and_rules_about_the_batch_look_at_the_rows_that_there_are_afterwards(tmp_path: Path) -> None:
    mill = replaced(tmp_path, "Tumbling('10 s')", "Repeatedly(AfterCount(1))")
    path = tmp_path / "data_contracts" / "firings.odcs.yaml"
    text = path.read_text()
    for name in ("user", "window_start"):
        line = next(line for line in text.splitlines() if f"name: {name}," in line)
        text = text.replace(line, line.replace("required: true", "required: true, primaryKey: true"))
    assert text.count("primaryKey: true") == 2
    path.write_text(text)
    mill = Mill(mill.project.load(tmp_path), NO_SPARK, "firings")
    for amount in (1, 2):
        mill.feed([an_event(1, "a", amount)])
        mill.run()
    assert [(r["n"], r["amount"]) for r in mill.published()] == [(2, 3)]


def test_a_repair_keeps_the_rows_from_before_and_after_it(tmp_path: Path) -> None:
    mill = replaced(tmp_path, "Tumbling('10 s')", "Repeatedly(AfterCount(1))", delay="1 hour")
    mill.feed([an_event(1, "a", 1), an_event(2, "a", 2_000_000)])
    mill.run()
    path = tmp_path / "data_contracts" / "events.odcs.yaml"
    path.write_text(path.read_text().replace("maximum: 1000000", "maximum: 3000000"))
    done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    [kept] = rows_of(mill.project.table_uri("firings", "corrections"))
    assert (json.loads(kept["before"])["amount"], json.loads(kept["after"])["amount"]) == (1, 2_000_001)
    assert kept["key"] == '{"user": "a"}'


def test_what_a_filter_left_out_of_the_first_firing_was_never_there_and_is_not_removed(tmp_path: Path) -> None:
    mill = replaced(tmp_path, "Tumbling('10 s')", "Repeatedly(AfterCount(1))", delay="1 hour")
    path = tmp_path / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace(".publish(", '.filter("amount < 10").publish('))
    mill = Mill(mill.project.load(tmp_path), NO_SPARK, "firings")
    mill.feed([an_event(second, "a", 50) for second in (1, 11, 21)])
    mill.run()
    assert not Path(mill.project.published_uri("firings")).exists()


def test_a_backfill_that_lacks_records_says_that_later_offsets_do_not_help(tmp_path: Path) -> None:
    mill = replaced(tmp_path, "Tumbling('10 s')", "Repeatedly(AfterCount(1))", partitions=1)
    for second in range(3):
        mill.feed([an_event(second, "a", 1)])
        mill.run()
    mill.log.trim("events", 0, 2)
    with pytest.raises(
        OffsetsLost, match="all of the log is needed, because rows of firings are updated in firings"
    ) as error:
        done(backfill(an_amendment(mill), OfOffsets(since={TopicPartition("events", 0): 2}, until={})))
    assert "name later offsets" not in error.value.fix
    assert "tidemill rebuild firings --accept-loss" in error.value.fix
