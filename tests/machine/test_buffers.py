"""Buffers through the whole protocol on the tiny engine: cut anywhere, killed anywhere, folded, maintained, rewound."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from machine.told import USERS, Told, disturbed, places_of, shown
from support.commands import type_command
from support.firings import firings
from support.ordered import Record
from support.ordered_oracle import buffered
from support.projects import NO_SPARK, NOW, an_event, rows_of
from support.short_forms import shortened
from tidemill import CountPolicy, DeltaPolicy, PunctuationPolicy, SlidingBuffer, TimePolicy, TumblingBuffer
from tidemill.core.errors import DeclarationError
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.repair.state_compaction import Folding
from tidemill.inspect.state_size import state_sizes
from tidemill.maintain.maintenance import maintain
from tidemill.maintain.state_compaction import fold
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair

pytestmark = pytest.mark.usefixtures("tiny", "early_maintenance")

BUFFERS = {
    "TumblingBuffer(CountPolicy(3))": TumblingBuffer(CountPolicy(3)),
    "TumblingBuffer(DeltaPolicy('amount', 4))": TumblingBuffer(DeltaPolicy("amount", 4)),
    "TumblingBuffer(PunctuationPolicy('marker'))": TumblingBuffer(PunctuationPolicy("marker")),
    "SlidingBuffer(CountPolicy(4), CountPolicy(2))": SlidingBuffer(CountPolicy(4), CountPolicy(2)),
    "SlidingBuffer(CountPolicy(3), DeltaPolicy('amount', 2))": SlidingBuffer(CountPolicy(3), DeltaPolicy("amount", 2)),
    "SlidingBuffer(DeltaPolicy('amount', 3), CountPolicy(2))": SlidingBuffer(DeltaPolicy("amount", 3), CountPolicy(2)),
}
SHORT = list(BUFFERS)[2:4]
TIMED = {
    "SlidingBuffer(TimePolicy('6 s'))": SlidingBuffer(TimePolicy("6 s")),
    "SlidingBuffer(TimePolicy('6 s'), CountPolicy(3))": SlidingBuffer(TimePolicy("6 s"), CountPolicy(3)),
    "SlidingBuffer(TimePolicy('6 s'), DeltaPolicy('amount', 2))": SlidingBuffer(
        TimePolicy("6 s"), DeltaPolicy("amount", 2)
    ),
}


def expected(told: Told, declared: Any) -> list[tuple[str, int, int | None]]:
    found = []
    for user in USERS:
        own = [event for event in told.order if event[1] == user]
        marked = isinstance(getattr(declared, "flush", None), PunctuationPolicy)
        records = [
            Record(time=second * 1_000_000, value=amount, marker=marked and amount == -1) for second, _, amount in own
        ]
        for fires in buffered(declared, records):
            found.append((user, len(fires), sum(own[i][2] for i in fires) if fires else None))
    return sorted(found, key=str)


@pytest.mark.parametrize(("text", "seed"), shortened(product(BUFFERS, range(4)), [(text, 0) for text in SHORT]))
def test_firings_are_those_of_the_plain_rule_whatever_is_done_to_the_batches(
    tmp_path: Path, text: str, seed: int
) -> None:
    mill, draw = firings(tmp_path, NO_SPARK, text, collect=False, partitions=2), random.Random(f"{text}{seed}")
    places, told = places_of(mill), Told(mill)
    for _ in range(8):
        told.feed(draw)
        disturbed(told, draw, places, told.run)
        told.run()
        assert shown(mill) == expected(told, BUFFERS[text])


@pytest.mark.parametrize(("text", "seed"), shortened(product(TIMED, range(4)), [(list(TIMED)[1], 0)]))
def test_buffers_of_the_last_seconds_evict_by_the_times_of_records(tmp_path: Path, text: str, seed: int) -> None:
    mill, draw = firings(tmp_path, NO_SPARK, text, collect=False, delay="1 hour", partitions=2), random.Random(seed)
    # The watermark is an hour behind, so it evicts nothing that newer records leave.
    places, told = places_of(mill), Told(mill, disorder=9)
    for _ in range(8):
        told.feed(draw)
        disturbed(told, draw, places, told.run)
        told.run()
        assert shown(mill) == expected(told, TIMED[text])


def test_the_watermark_evicts_what_is_older_and_an_empty_buffer_is_no_firing(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "SlidingBuffer(TimePolicy('6 s'))", collect=False)
    for second, user in ((10, "a"), (100, "b"), (11, "a"), (95, "a")):
        mill.feed([an_event(second, user, second)])
        mill.run()
    assert shown(mill) == [("a", 1, 10), ("a", 1, 95), ("b", 1, 100)]
    assert mill.own("late") == []


@pytest.mark.parametrize("text", [*TIMED, "SlidingBuffer(TimePolicy('6 s'), TimePolicy('7 s', clock='batch_clock'))"])
def test_a_backfill_evicts_what_batches_evicted_that_folded_no_key_for_it(tmp_path: Path, text: str) -> None:
    mill, draw = firings(tmp_path, NO_SPARK, text, collect=False), random.Random(text)
    for number in range(12):
        at = 3 * number
        mill.feed([an_event(at + draw.randint(-2, 2), draw.choice("ab"), draw.randint(1, 9)) for _ in range(2)])
        mill.run(clock=NOW + timedelta(seconds=at))
    before = shown(mill)
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert shown(mill) == before != []


@pytest.mark.usefixtures("much_state")
def test_state_of_firings_is_folded_to_what_keys_still_need_and_ended_keys_stay_ended(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(4))", collect=False)
    for second, user in enumerate("aaababbaab"):
        mill.feed([an_event(second, user, second)])
        mill.run()
    [first, _] = list(fold(an_amendment(mill), Folding(group=4, overlap=1.0, groups=1)))
    assert first.tables["state of firings"]
    list(maintain(mill.project, mill.name, keep=timedelta(0), now=datetime.now(UTC)))
    rows = rows_of(mill.project.table_uri(mill.name, "state/firings"))
    assert sum(row["piece_id"] is not None for row in rows) < 10
    mill.feed([an_event(20, "a", 20), an_event(21, "a", 21), an_event(22, "b", 22)])
    mill.run()
    assert shown(mill) == [("a", 4, 7 + 8 + 20 + 21), ("a", 4, 0 + 1 + 2 + 4), ("b", 4, 3 + 5 + 6 + 9)]


def test_a_record_that_is_let_in_counts_in_the_batch_that_lets_it_in(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(3))", collect=False)
    mill.feed([an_event(0, "a", 1), an_event(1, "a", 2_000_000), an_event(2, "a", 2)])
    mill.run()
    path = tmp_path / "data_contracts" / "events.odcs.yaml"
    path.write_text(path.read_text().replace("maximum: 1000000", "maximum: 3000000"))
    done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    assert shown(mill) == [("a", 3, 2_000_003)]


def test_status_tells_how_much_the_keys_of_buffers_keep(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(3))", collect=False)
    mill.feed([an_event(0, "a", 1), an_event(1, "b", 1), an_event(2, "c", 1), an_event(3, "c", 1), an_event(4, "c", 1)])
    position = mill.run().position
    [size] = state_sizes(mill.project, mill.project.pipeline("firings"), position)
    # What two keys keep, and a piece for each.
    assert (size.table, size.rows, size.oldest_open) == ("firings", 4, None)
    assert size.bytes > 0
    told = type_command(tmp_path, "status", "firings")
    assert (told.code, "firings: 4 rows" in told.out) == (0, True), told


def test_after_a_drain_records_wait_for_their_marker_again(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(PunctuationPolicy('marker'))", collect=False)
    mill.feed([an_event(1, "a", 1)])
    mill.run(drain=True)
    for amount in (2, 3, -1, 4):
        mill.feed([an_event(amount, "a", amount)])
        mill.run()
    assert shown(mill) == [("a", 1, 1), ("a", 2, 2 + 3)]
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert shown(mill) == [("a", 1, 1), ("a", 2, 2 + 3)]


@pytest.mark.parametrize(
    "window",
    [
        'TumblingBuffer(TimePolicy("LENGTH", clock="batch_clock"), emit_empty=True)',
        'SlidingBuffer(CountPolicy(3), TimePolicy("LENGTH", clock="batch_clock"))',
    ],
)
def test_a_time_of_which_very_many_fit_between_two_batches_is_refused(tmp_path: Path, window: str) -> None:
    bounds = window.startswith("Tumbling")
    with pytest.raises(DeclarationError, match="a key fires 60,000 times from one batch to the next, 1 minute"):
        firings(tmp_path / "refused", NO_SPARK, window.replace("LENGTH", "1 ms"), bounds=bounds, collect=False).run()
    mill = firings(tmp_path / "taken", NO_SPARK, window.replace("LENGTH", "6 ms"), bounds=bounds, collect=False)
    assert mill.project.pipeline("firings").sinks


def test_a_record_of_1970_gives_no_row_for_each_hour_since_then(tmp_path: Path) -> None:
    text = "TumblingBuffer(TimePolicy('1 hour'), emit_empty=True)"
    mill = firings(tmp_path, NO_SPARK, text, bounds=True, collect=False)
    for amount, second in ((1, -1_600_000_000), (2, 0), (4, 3 * 3600)):
        mill.feed([an_event(second, "a", amount)])
    mill.run(drain=True)
    assert shown(mill) == sorted([("a", 1, 1), ("a", 1, 2), ("a", 0, None), ("a", 0, None), ("a", 1, 4)], key=str)
