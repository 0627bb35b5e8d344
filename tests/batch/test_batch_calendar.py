"""Windows of the calendar on Spark: days and months of a time zone, whatever its clocks do."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from support.projects import NOW, Mill, an_event, rows_of, sums
from support.writers import WRITERS
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.state_compaction import Folding
from tidemill.inspect.verify import Scope, verify
from tidemill.maintain.state_compaction import fold
from tidemill.repair.backfill import backfill

pytestmark = pytest.mark.spark

NEW_YORK = 'Calendar("day", "America/New_York")'


def at(text: str) -> float:
    """Seconds from the start of the tests' time to a moment."""
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - NOW).total_seconds()


def windows(mill: Mill) -> dict[tuple[str, str], int]:
    """How many records each published window has."""
    return {(f"{r['window_start']:%m-%d %H:%M}", f"{r['window_end']:%m-%d %H:%M}"): r["n"] for r in mill.published()}


@pytest.mark.parametrize("writer", WRITERS)
def test_days_of_new_york_have_23_and_25_hours(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = sums(tmp_path, spark, window=NEW_YORK, writer=writer)
    mill.feed([an_event(at(t)) for t in ("2025-03-09 04:59:59", "2025-03-09 05:00", "2025-03-10 03:59:59")])
    mill.run()
    mill.feed([an_event(at(t)) for t in ("2025-03-10 04:00", "2025-11-02 04:00", "2025-11-03 04:59:59")])
    mill.run()
    for text in ("2025-11-03 05:00", "2025-11-02 23:00"):
        mill.feed([an_event(at(text))])
        mill.run()
    assert windows(mill) == {
        ("03-08 05:00", "03-09 05:00"): 1,
        ("03-09 05:00", "03-10 04:00"): 2,
        ("03-10 04:00", "03-11 04:00"): 1,
        ("11-02 04:00", "11-03 05:00"): 2,
    }
    [late] = mill.own("late")
    assert (late["window_start"], late["window_end"]) == (
        datetime(2025, 11, 2, 4, tzinfo=UTC),
        datetime(2025, 11, 3, 5, tzinfo=UTC),
    )
    ends = {r["pane_end"] for r in rows_of(mill.project.table_uri("sums", "state", "sums"))}
    assert datetime(2025, 3, 10, 4, tzinfo=UTC) in ends


def test_weeks_start_on_monday_and_months_and_years_on_their_first_day(tmp_path: Path, spark: Any) -> None:
    found = {}
    for unit in ("week", "month", "quarter", "year"):
        mill = sums(tmp_path / unit, spark, window=f'Calendar("{unit}")')
        mill.feed([an_event(at("2025-05-20 12:00")), an_event(at("2026-10-31 12:00"))])
        mill.run()
        [found[unit]] = windows(mill)
    assert found == {
        "week": ("05-19 00:00", "05-26 00:00"),
        "month": ("05-01 00:00", "06-01 00:00"),
        "quarter": ("04-01 00:00", "07-01 00:00"),
        "year": ("01-01 00:00", "01-01 00:00"),
    }


def test_late_records_folds_and_backfills_leave_what_the_log_gives(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, window='Calendar("day", "Asia/Kathmandu")', lateness="1 day", delay="1 hour")
    for day in range(8):
        mill.feed([an_event(at("2026-02-01") + day * 86_400 + hour * 3_000, "abc"[hour % 3]) for hour in range(30)])
        mill.feed([an_event(at("2026-02-01") + (day - 1) * 86_400, "late")])
        mill.run()
    [found] = verify(an_amendment(mill), Scope())
    assert (found.differences.count, found.differences.compared) == (0, len(mill.published()))
    seen = mill.everything()
    assert len(seen["sums"]) > 20
    list(fold(an_amendment(mill), Folding(group=4, overlap=1.0, groups=1)))
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    mill.feed([an_event(at("2026-02-08"), "late")])
    mill.run()
    [found] = verify(an_amendment(mill), Scope())
    assert found.differences.count == 0
    late = {(r["window_start"], r["n"]) for r in mill.published() if r["user"] == "late"}
    assert len(late) == 9
