"""What maintenance forgets, on the real engine: rows of state follow what is open, and what goes back stays right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from support.projects import NOW, Mill, an_event, rows_of, sums
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.inspect.state_size import state_sizes
from tidemill.inspect.verify import Scope, verify
from tidemill.maintain import maintenance
from tidemill.maintain.maintenance import maintain
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair

GONE = "rows of windows closed for good removed"


def tidied(mill: Mill) -> int:
    """How many rows of state maintenance has removed, because their windows are closed for good."""
    found = list(maintain(Project.load(mill.project.folder), "sums", keep=timedelta(0), now=datetime.now(UTC)))
    return sum(task.count for task in found if task.what == GONE)


def state_of(mill: Mill) -> list[tuple[float, str]]:
    """Where the rows of state start, in minutes, and their keys."""
    rows = rows_of(mill.project.table_uri("sums", "state", "sums"))
    return sorted(((r["pane_start"].timestamp() - NOW.timestamp()) / 60, r["user"]) for r in rows)


def aside(mill: Mill, table: str) -> list[int]:
    """The offsets in quarantine, or in the late table."""
    return sorted(r["offset"] for r in mill.own(table))


def test_after_the_watermark_has_passed_it_exactly_the_rows_of_windows_that_are_not_closed_remain(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "AT_LEAST", 1)
    mill = sums(tmp_path, spark, window='Tumbling("5 minutes")', delay="10 minutes", maintenance={"state": "0 seconds"})
    mill.feed([an_event(60 * minute) for minute in range(10, 16)])
    mill.run()
    assert tidied(mill) == 0
    mill.feed([an_event(60 * 25)])
    mill.run()
    assert state_of(mill) == [(10, "a"), (15, "a"), (25, "a")]
    assert tidied(mill) == 1
    assert state_of(mill) == [(15, "a"), (25, "a")]
    assert [(r["n"], r["amount"]) for r in mill.published()] == [(5, 5)]
    mill.feed([an_event(60 * 10)])
    mill.run()
    assert len(mill.own("late")) == 1
    assert state_of(mill) == [(15, "a"), (25, "a")]


@pytest.mark.long
def test_of_a_million_keys_over_an_hour_the_state_follows_what_may_still_change(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "AT_LEAST", 1)
    minutes, keys = 60, 1_000_000 // 60
    more = {"window": 'Tumbling("1 minute")', "delay": "1 minute", "lateness": "2 minutes"}
    mill = sums(tmp_path, spark, **more, maintenance={"state": "3 minutes"})
    sizes = []
    for first in range(0, minutes, 6):
        for minute in range(first, first + 6):
            mill.feed(an_event(60 * minute + k % 60, f"{minute}-{k}") for k in range(keys))
        mill.run()
        tidied(mill)
        [size] = state_sizes(mill.project, mill.project.pipeline("sums"), mill.project.ledger("sums").view().position)
        sizes.append(size.rows)
        latest = first + 5 - 1  # the watermark, by the delay
        assert min(start for start, _ in state_of(mill)) >= max(latest - 2 - 3 - 1, 0)
    # Delay, lateness, age, the window that is open, and one more that ends after the moment.
    assert max(sizes) <= keys * (1 + 2 + 3 + 1 + 1)
    assert len(mill.published()) == keys * (minutes - 2), "of all windows that closed"


# Its short form is tests/machine/test_forgetting.py.
@pytest.mark.long
@pytest.mark.parametrize("window", ['Tumbling("10 seconds")'])
@pytest.mark.parametrize("driver_rows", [500_000, 1])
def test_repairs_and_backfills_after_it_are_right_and_agree_with_the_log(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, window: str, driver_rows: int
) -> None:
    monkeypatch.setattr(maintenance, "AT_LEAST", 1)
    mill = sums(tmp_path, spark, window=window, lateness="10 s", maintenance={"state": "10 s"}, driver_rows=driver_rows)
    odd = an_event(14, "b", 2_000_000)
    for events in ((an_event(1), an_event(12)), (an_event(25), odd), (an_event(3), an_event(50)), (an_event(65, "b"),)):
        mill.feed(events)
        mill.run()
    mill.feed([an_event(44), an_event(66)])
    mill.run()
    mill.feed([an_event(41, "c"), an_event(75)])
    mill.run()
    assert tidied(mill) > 0
    late = [4, 7, 9] if "Tumbling" in window else []
    assert aside(mill, "late") == late
    contract = mill.project.folder / "data_contracts" / "events.odcs.yaml"
    contract.write_text(contract.read_text().replace("maximum: 1000000", "maximum: 9000000"))
    mill = Mill(Project.load(mill.project.folder), spark, "sums")

    def agrees() -> None:
        for found in verify(an_amendment(mill), Scope()):
            assert found.agrees, found

    agrees()
    before = mill.published()
    done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    assert aside(mill, "quarantine") == []
    assert aside(mill, "late") == [3, *late]
    assert mill.published() == before
    done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    assert aside(mill, "late") == [3, *late], "their windows are forgotten"
    assert mill.published() == before
    agrees()
    place = TopicPartition("events", 0)
    done(backfill(an_amendment(mill, most=2), OfOffsets(since={place: 2}, until={place: 5})))
    agrees()
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert aside(mill, "late") == []
    assert sum(r["amount"] for r in mill.published() if r["user"] == "b") >= 2_000_000
    agrees()
    assert tidied(mill) > 0
    mill.feed([an_event(99)])
    mill.run()
    agrees()
