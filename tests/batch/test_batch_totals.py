"""Aggregates without a window on Spark: the latest totals of each key, whatever is repaired or read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from amend.conftest import an_amendment, done
from support.projects import Mill, an_event, totals
from support.writers import WRITERS
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.repair.state_compaction import Folding
from tidemill.inspect.verify import Scope, verify
from tidemill.maintain.state_compaction import fold
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.spark


def totals_of(mill: Mill) -> dict[str, tuple[int, int]]:
    return {r["user"]: (r["n"], r["amount"]) for r in mill.published()}


def checked(mill: Mill) -> None:
    [found] = verify(an_amendment(mill), Scope())
    assert (found.differences.count, found.differences.compared) == (0, len(mill.published()))


@pytest.mark.parametrize("writer", WRITERS)
def test_totals_grow_with_every_batch_and_no_record_is_late(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = totals(tmp_path, spark, writer=writer)
    mill.feed([an_event(100, "a", 1), an_event(200, "b", 2), an_event(9e6, "a", 4)])
    first = mill.run()
    assert totals_of(mill) == {"a": (2, 5), "b": (1, 2)}
    mill.feed([an_event(-9e8, "b", 10), an_event(5, "c", 3), an_event(5, "nobody")], partition=1)
    second = mill.run()
    assert totals_of(mill) == {"a": (2, 5), "b": (2, 12), "c": (1, 3)}
    assert (first.accounts["events"].late, second.accounts["events"].late, second.accounts["events"].filtered) == (
        0,
        0,
        1,
    )
    assert mill.own("late") == []
    checked(mill)


@pytest.mark.parametrize("writer", WRITERS)
def test_repairs_backfills_folds_and_rewinds_leave_what_the_log_gives(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = totals(tmp_path, spark, writer=writer)
    for number in range(8):
        mill.feed([an_event(number, "abc"[number % 3], number), an_event(50 - number, "d"), b"{cut"])
        mill.run()
    seen = mill.everything()
    list(fold(an_amendment(mill), Folding(group=4, overlap=1.0, groups=1)))
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert mill.everything() == seen
    done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    checked(mill)
    mill.feed([an_event(0, "a", 100)])
    last = mill.run()
    assert totals_of(mill)["a"] == (4, 109)
    done(rewind(an_amendment(mill), last.batch_id - 1))
    assert totals_of(mill)["a"] == (3, 9)
    mill.run()
    assert totals_of(mill)["a"] == (4, 109)
    checked(mill)


def test_row_68_a_batch_that_is_planned_again_with_other_records_builds_on_the_value_before_it(
    tmp_path: Path, spark: Any
) -> None:
    mill = totals(tmp_path, spark)
    mill.feed([an_event(1, "a", 1)])
    first = mill.run()
    mill.feed([an_event(2, "a", 3)])
    second = mill.run()
    mill.feed([an_event(3, "a", 2)], partition=1)
    third = mill.run()
    path = mill.project.published_uri("totals")
    values = [DeltaTable(path, version=c.tables["totals"]) for c in (first, second, third)]
    assert [table.to_pyarrow_table()["amount"].to_pylist() for table in values] == [[1], [4], [6]]
    done(rewind(an_amendment(mill), first.batch_id))
    again = mill.run(limit=1)
    assert (again.position.topics["events"].offsets, totals_of(mill)) == ({0: 1, 1: 1}, {"a": (2, 3)})
    mill.run()
    assert totals_of(mill) == {"a": (3, 6)}
    checked(mill)


@pytest.mark.parametrize("writer", WRITERS)
def test_without_a_key_there_is_one_row(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = totals(tmp_path, spark, keyed=False, writer=writer)
    for number in range(3):
        mill.feed([an_event(number, "abc"[number], number)])
        mill.run()
        assert [(r["n"], r["amount"]) for r in mill.published()] == [(number + 1, sum(range(number + 1)))]
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert [(r["n"], r["amount"]) for r in mill.published()] == [(3, 3)]
    checked(mill)


def test_after_a_drain_totals_go_on(tmp_path: Path, spark: Any) -> None:
    mill = totals(tmp_path, spark)
    mill.feed([an_event(1)])
    mill.run(drain=True)
    mill.feed([an_event(2)])
    mill.run()
    assert totals_of(mill) == {"a": (2, 2)}
