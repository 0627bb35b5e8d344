"""Backfills of tables of firings through the whole protocol on the tiny engine, against the plain rules."""

from __future__ import annotations

import pickle
import random
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from amend.conftest import an_amendment, done
from machine.test_buffers import BUFFERS, expected, shown
from machine.test_triggers import MODES, TRIGGERS, WINDOWS, with_trigger
from machine.test_triggers import expected as expected_of_windows
from machine.test_triggers import shown as shown_windows
from machine.told import Told, disturbed, places_of
from support.firings import firings
from support.projects import NO_SPARK, Mill, an_event
from support.short_forms import crossed, shortened
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.repair.selection import OfOffsets
from tidemill.repair.backfill import backfill
from tidemill.run.histories import turns_of

pytestmark = pytest.mark.usefixtures("tiny", "early_maintenance")

ALL = OfOffsets(since={}, until={})


def somewhere(mill: Mill, draw: random.Random) -> OfOffsets | None:
    """Some offsets of one partition that were read; None if there are none."""
    ledger, partition = mill.project.ledger(mill.name), draw.randint(0, 1)
    read = ledger.view().position.topics if ledger.exists else {}
    end = read["events"].offsets.get(partition, 0) if read else 0
    if not end:
        return None
    begin, place = draw.randrange(end), TopicPartition("events", partition)
    return OfOffsets(since={place: begin}, until={place: min(begin + draw.randint(1, 4), end)})


def replay(mill: Mill, draw: random.Random) -> None:
    if (wanted := somewhere(mill, draw)) is not None:
        done(backfill(an_amendment(mill), wanted))


@pytest.mark.parametrize(("text", "seed"), shortened(product(BUFFERS, range(3)), [(list(BUFFERS)[2], 0)]))
def test_a_backfill_by_the_same_declaration_changes_nothing_whatever_is_done_around_it(
    tmp_path: Path, text: str, seed: int
) -> None:
    mill, draw = firings(tmp_path, NO_SPARK, text, collect=False, partitions=2), random.Random(f"again {text}{seed}")
    places, told = places_of(mill, beside=True), Told(mill)
    for _ in range(8):
        told.feed(draw)
        disturbed(told, draw, places, partial(replay, mill, draw))
        told.run()
        assert shown(mill) == expected(told, BUFFERS[text])


@pytest.mark.parametrize(("window", "trigger", "mode"), crossed(WINDOWS, TRIGGERS, MODES))
def test_a_backfill_folds_windows_with_the_watermarks_of_then(
    tmp_path: Path, window: str, trigger: str, mode: str
) -> None:
    draw = random.Random(f"again {window}{trigger}{mode}")
    mill, declared = with_trigger(tmp_path, window, trigger, mode, lateness=draw.choice(["0 s", "8 s"]))
    told, places = Told(mill, disorder=12), places_of(mill, beside=True)
    for _ in range(7):
        told.feed(draw)
        disturbed(told, draw, places, partial(replay, mill, draw))
        told.run()
        assert shown_windows(mill) == expected_of_windows(told, declared)


def test_a_history_keeps_no_position_of_each_batch(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(3))", collect=False, partitions=2)
    for second in range(3):
        mill.feed([an_event(second)], partition=second % 2)
        mill.run()
    turns = turns_of(mill.project.ledger(mill.name))
    assert [turn.batch_id for turn in turns] == [1, 2, 3]
    assert b"PartitionClock" not in pickle.dumps(turns)
