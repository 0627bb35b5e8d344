"""Steps after `aggregate` on Spark: filters (HAVING) take rows back that no longer meet them, columns are computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from support.projects import SUMS_CONTRACT, TOTALS_CONTRACT, Mill, an_event, sums, totals
from support.writers import WRITERS
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.inspect.verify import Scope, verify
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair

pytestmark = pytest.mark.spark

STEPS = ".filter('n >= 2').with_columns(mean='amount / n').select(SELECTED).filter('mean < 50')"


def with_steps(mill: Mill, contract: str, *selected: str) -> Mill:
    """The mill with steps after its aggregates: rows of at least two records, with their mean instead of their sum."""
    columns = ", ".join(map(repr, (*selected, "user", "n", "mean")))
    folder, steps = mill.project.folder, STEPS.replace("SELECTED", columns)
    path = folder / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace(".publish(", f"{steps}.publish("))
    changed = contract.replace("{name: amount, logicalType: integer}", "{name: mean, logicalType: number}")
    (folder / "data_contracts" / f"{mill.name}.odcs.yaml").write_text(changed)
    return Mill(Project.load(folder), mill.session, mill.name)


def shown(mill: Mill) -> dict[Any, tuple[int, float]]:
    """Count and mean by second of the window's start and user, or by user."""
    return {_key(row): (row["n"], row["mean"]) for row in mill.published()}


def _key(row: dict[str, Any]) -> Any:
    return (row["window_start"].second, row["user"]) if "window_start" in row else row["user"]


def checked(mill: Mill) -> None:
    [found] = verify(an_amendment(mill), Scope())
    assert (found.differences.count, found.differences.compared) == (0, len(mill.published())), found.differences


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("trigger", ["on_close", "on_update"])
def test_a_window_that_no_longer_meets_a_filter_is_taken_back(
    tmp_path: Path, spark: Any, writer: str, trigger: str
) -> None:
    mill = sums(tmp_path, spark, writer=writer, trigger=trigger, lateness="1 hour")
    mill = with_steps(mill, SUMS_CONTRACT, "window_start", "window_end")
    mill.feed([an_event(1, "a", 10), an_event(2, "a", 20), an_event(3, "b", 1), an_event(4, "c", 60)])
    mill.feed([an_event(12, "a")])
    mill.run()
    assert shown(mill) == {(0, "a"): (2, 15.0)}
    mill.feed([an_event(5, "a", 300), an_event(6, "b", 2), an_event(7, "c", 30), an_event(13, "a")])
    mill.run()
    first = {(0, "b"): (2, 1.5), (0, "c"): (2, 45.0)}
    assert shown(mill) == first | ({(10, "a"): (2, 1.0)} if trigger == "on_update" else {})
    mill.feed([an_event(25, "end")])
    mill.run()
    assert shown(mill) == first | {(10, "a"): (2, 1.0)}
    checked(mill)
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert shown(mill) == first | {(10, "a"): (2, 1.0)}


@pytest.mark.parametrize("writer", WRITERS)
def test_totals_and_sessions_are_taken_back_too(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = with_steps(totals(tmp_path / "totals", spark, writer=writer), TOTALS_CONTRACT)
    mill.feed([an_event(1, "a", 10), an_event(2, "a", 20), an_event(3, "b", 1)])
    mill.run()
    assert shown(mill) == {"a": (2, 15.0)}
    mill.feed([an_event(4, "a", 300), an_event(5, "b", 2)])
    mill.run()
    assert shown(mill) == {"b": (2, 1.5)}
    checked(mill)
    of_sessions = sums(tmp_path / "sessions", spark, writer=writer, window='Session("10 seconds")', lateness="1 hour")
    mill = with_steps(of_sessions, SUMS_CONTRACT, "window_start", "window_end")
    mill.feed([an_event(1, "a", 10), an_event(2, "a", 20), an_event(20, "a", 1), an_event(21, "a", 2), an_event(90)])
    mill.run()
    assert shown(mill) == {(1, "a"): (2, 15.0), (20, "a"): (2, 1.5)}
    mill.feed([an_event(11, "a", 600)])
    mill.run()
    assert shown(mill) == {}
    checked(mill)


def test_an_admitted_late_record_takes_its_window_back(tmp_path: Path, spark: Any) -> None:
    mill = with_steps(sums(tmp_path, spark), SUMS_CONTRACT, "window_start", "window_end")
    mill.feed([an_event(1, "a", 10), an_event(2, "a", 20), an_event(40)])
    mill.run()
    mill.feed([an_event(3, "a", 300)])
    mill.run()
    assert shown(mill) == {(0, "a"): (2, 15.0)}
    done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    assert shown(mill) == {}
    checked(mill)


def test_columns_of_sliding_windows_that_are_merged_ahead(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, window='Sliding("20 seconds", "1 second")')
    path = mill.project.folder / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace(".publish(", ".with_columns(amount='amount * 2 + n').publish("))
    mill = Mill(Project.load(mill.project.folder), spark, "sums")
    for start in (0, 10, 30):
        mill.feed([an_event(start + second, "ab"[second % 2], second) for second in range(10)])
        mill.run()
    rows = {(r["window_start"].second, r["user"]): r for r in mill.published() if r["window_start"].minute == 0}
    assert (rows[0, "a"]["n"], rows[0, "a"]["amount"]) == (10, 2 * 40 + 10)
    checked(mill)
