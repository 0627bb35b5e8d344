"""Published tables are held against the log; a number is traced back to its batches; maintenance loses neither."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from amend.conftest import an_amendment, done
from support.projects import NOW, Mill, an_event, sums
from support.recovery import a_wide_mill
from tidemill.core.errors import InputError
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import OfOffsets, OfWindows
from tidemill.core.repair.side_outputs import Selection
from tidemill.inspect.contributions import Lineage
from tidemill.inspect.lineage import lineage
from tidemill.inspect.verify import Scope, verify
from tidemill.maintain.maintenance import maintain
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.spark

ALL = OfOffsets(since={}, until={})


def differences(mill: Mill, scope: Scope | None = None) -> dict[str, tuple[int, int]]:
    """Rows compared and rows different, by table."""
    found = verify(an_amendment(mill), scope or Scope())
    return {each.table: (each.differences.compared, each.differences.count) for each in found}


def second(number: int) -> datetime:
    """A moment after the beginning of all events."""
    return NOW + timedelta(seconds=number)


def test_what_batches_published_is_what_one_computation_gives(tmp_path: Path, spark: Any) -> None:
    mill = a_wide_mill(tmp_path, spark)
    mill.run()
    assert differences(mill) == {"sums": (7, 0), "totals": (5, 0)}
    mill.catch_up()
    assert [different for _, different in differences(mill).values()] == [0, 0]


def test_a_row_that_is_wrong_missing_or_too_many_is_found(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(s) for s in (1, 11, 21, 31, 41)])
    mill.run()
    table = DeltaTable(mill.project.published_uri("sums"))
    table.update({"n": "7"}, predicate=f"window_start = '{second(0).isoformat()}'")
    table.delete(f"window_start = '{second(10).isoformat()}'")
    table.update({"user": "'x'"}, predicate=f"window_start = '{second(20).isoformat()}'")
    [found] = verify(an_amendment(mill), Scope())
    assert found.differences.count == 4
    kinds = sorted((e.expected is None, e.found is None) for e in found.differences.examples)
    assert kinds == [(False, False), (False, True), (False, True), (True, False)]
    assert differences(mill, Scope(windows=OfWindows(since=second(30), until=second(40)))) == {"sums": (1, 0)}
    assert differences(mill, Scope(windows=OfWindows(since=second(10), until=second(20)))) == {"sums": (1, 1)}
    found = differences(mill, Scope(sample=0.99))
    assert found["sums"][1] == 4


def test_a_row_that_is_there_twice_is_found(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(s) for s in (1, 11, 21)])
    mill.run()
    uri = mill.project.published_uri("sums")
    write_deltalake(uri, DeltaTable(uri).to_pyarrow_table().slice(0, 1), mode="append")
    [found] = verify(an_amendment(mill), Scope())
    assert (found.differences.count, found.differences.missing, found.differences.extra) == (1, 0, 1)
    assert [each.expected for each in found.differences.examples] == [None]


def traced(mill: Mill, start: int, user: str) -> Lineage:
    """What made the number of a window."""
    return lineage(an_amendment(mill).project, "sums", None, second(start), {"user": user})


def test_a_number_is_traced_back_to_offsets_and_firings(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, lateness="20 s")
    for seconds in ((1, 2), (12, 3), (25,), (4,), (60,), (5,)):
        mill.feed([an_event(s) for s in seconds])
        mill.run()
    done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    found = traced(mill, 0, "a")
    assert found.row is not None
    assert found.row["n"] == 5
    assert [(c.batch_id, c.kind.value, c.counts) for c in found.contributions] == [
        (1, "live", True),
        (2, "live", True),
        (4, "live", True),
        (7, "repair", True),
    ]
    assert [str(r) for r in found.contributions[1].ranges["events"]] == ["events-0 [2, 4)"]
    assert [(p.batch_id, p.timing) for p in found.publications] == [(2, "ON_TIME"), (4, "LATE"), (7, "REPAIR")]
    assert [c["batch_id"] for c in found.corrections] == [7]
    done(backfill(an_amendment(mill), ALL))
    after = traced(mill, 0, "a")
    assert [c.batch_id for c in after.contributions if c.counts] == [8]
    assert after.publications[-1].timing == "BACKFILL"


def test_a_window_that_is_none_is_refused(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    with pytest.raises(InputError, match="no window of sums"):
        traced(mill, 3, "a")
    with pytest.raises(InputError, match="has the key"):
        lineage(mill.project, "sums", "sums", second(0), {"page": "a"})


def test_maintenance_removes_what_nobody_can_go_back_to_and_nothing_else(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    for number in range(6):
        mill.feed([an_event(10 * number)])
        mill.run()
    done(backfill(an_amendment(mill), ALL))
    for number in range(6, 22):
        mill.feed([an_event(10 * number)])
        mill.run()
    before = mill.published()
    state = DeltaTable(mill.project.table_uri("sums", "state", "sums"))
    rows = state.to_pyarrow_table().num_rows
    planned = list(maintain(mill.project, "sums", keep=timedelta(0), now=datetime.now(UTC), dry_run=True))
    assert DeltaTable(mill.project.table_uri("sums", "state", "sums")).version() == state.version()
    tasks = list(maintain(mill.project, "sums", keep=timedelta(0), now=datetime.now(UTC)))
    assert [(c.table, c.what, c.count) for c in planned if "rows" in c.what and c.count] == [
        ("state of sums", "rows of superseded slices removed", 6)
    ]
    assert [c.count for c in tasks if "rows" in c.what and c.count] == [6]
    after = DeltaTable(mill.project.table_uri("sums", "state", "sums")).to_pyarrow_table()
    assert after.num_rows == rows - 6
    assert mill.published() == before
    assert differences(mill) == {"sums": (len(before), 0)}
    done(rewind(an_amendment(mill), 15))
    mill.catch_up(drain=False)
    assert mill.published() == before
