"""`tidemill late windows` tells of records that some sliding windows missed, while later ones took them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from support.commands import type_command
from support.projects import NO_SPARK, NOW, Mill, an_event, sums
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.state_compaction import Folding
from tidemill.inspect.recent_batches import batches_of
from tidemill.inspect.window_map import window_map
from tidemill.maintain.state_compaction import fold
from tidemill.repair.backfill import backfill
from tidemill.repair.rewind import rewind


@pytest.fixture
def mill(tmp_path: Path) -> Mill:
    """Two batches: in the second, closed windows missed records that open ones took, and one was late for all."""
    mill = sums(tmp_path, NO_SPARK, window='Sliding("5 seconds", "1 second")')
    mill.feed([an_event(7)])
    mill.run()
    mill.feed([an_event(4.5), an_event(6.5), an_event(4.2), an_event(0.5), an_event(8)])
    mill.run()
    return mill


def told(folder: Path, *words: str) -> dict[float, tuple[int, int | None]]:
    """For each window, by the second of its start: how many records were late for it, and partly late."""
    lines = type_command(folder, "late", "windows", "sums", "--json", *words).lines
    found: dict[float, tuple[int, int | None]] = {}
    for line in lines:
        start = (type(NOW).fromisoformat(line["window_start"]) - NOW) / timedelta(seconds=1)
        found[start] = (line["records"], line["partly_late"])
    return found


def test_windows_that_missed_records_which_others_took_are_told(mill: Mill, tmp_path: Path) -> None:
    assert told(tmp_path) == {0: (1, 2), 1: (0, 2), 2: (0, 3)}
    said = type_command(tmp_path, "late", "windows", "sums").out
    assert "partly late" in said
    assert "1 record in 1 window; 7 times a window missed a record that later ones took" in said


def test_only_batches_and_tables_choose_among_them(mill: Mill, tmp_path: Path) -> None:
    assert told(tmp_path, "--batch", "2", "--table", "sums") == told(tmp_path)
    assert told(tmp_path, "--batch", "1") == {}
    for words in (("--topic", "events"), ("--partition", "0"), ("--since", "2020-01-01")):
        assert told(tmp_path, *words) == {0: (1, None)}
    assert "partly late" not in type_command(tmp_path, "late", "windows", "sums", "--topic", "events").out


@pytest.mark.parametrize("way", ["rewind", "backfill"])
def test_what_counts_no_more_is_not_told(mill: Mill, tmp_path: Path, way: str) -> None:
    ways: dict[str, Any] = {"rewind": lambda job: rewind(job, 1), "backfill": lambda job: backfill(job, _ALL)}
    list(ways[way](an_amendment(mill)))
    assert told(tmp_path) == {}


def on_the_page(mill: Mill) -> list[int]:
    """How many records came too late for each of the newest windows, as the page of the pipeline shows them."""
    [sink], ledger = mill.project.pipeline("sums").sinks, mill.project.ledger("sums")
    assert isinstance(sink, WindowedSink)
    batches = list(batches_of(entry.event for entry in ledger.since(0)).values())
    return [cell.refused for cell in window_map(mill.project, "sums", sink, ledger.view(), batches, most=9)]


def test_the_page_shows_them_too_until_a_backfill(mill: Mill) -> None:
    for _ in range(2):
        mill.feed([an_event(8)])
        mill.run()
    assert on_the_page(mill) == [3, 2, 3, 0, 0, 0, 0, 0, 0]
    assert list(fold(an_amendment(mill), Folding(group=3, overlap=0.1, groups=1)))
    assert on_the_page(mill) == [3, 2, 3, 0, 0, 0, 0, 0, 0]
    list(backfill(an_amendment(mill), _ALL))
    assert set(on_the_page(mill)) == {0}


def test_where_none_was_partly_late_nothing_is_said_of_it(tmp_path: Path) -> None:
    mill = sums(tmp_path, NO_SPARK)
    mill.feed([an_event(20)])
    mill.run()
    mill.feed([an_event(5)])
    mill.run()
    assert told(tmp_path) == {0: (1, 0)}
    assert "later ones" not in type_command(tmp_path, "late", "windows", "sums").out


_ALL = OfOffsets(since={}, until={})
