"""Windows whose bounds have names of their own, and rows that say why they were published."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from amend.test_verification import second
from support.projects import SUMS_CONTRACT, Mill, an_event, sums
from tidemill.core.errors import Incompatible
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.inspect.lineage import lineage
from tidemill.inspect.verify import Scope, verify
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill
from tidemill.repair.rebuild import rebuild
from tidemill.repair.repair import repair

pytestmark = pytest.mark.spark

TUMBLING = 'Tumbling("10 seconds")'
SLIDING = 'Sliding("20 minutes", "10 seconds", offset="5 s")'
TIMED = 'on_close", timing="why'


def renamed_contract(text: str) -> str:
    """The start is called `from_time`, the end is not published, and `why` stands in the middle."""
    lines = text.replace("window_start", "from_time").splitlines()
    kept = [line for line in lines if "window_end" not in line]
    at = next(i for i, line in enumerate(kept) if "name: n," in line)
    return "\n".join([*kept[:at], "      - {name: why, logicalType: string, required: true}", *kept[at:], ""])


def a_timed_mill(folder: Path, spark: Any, *, window: str = TUMBLING, trigger: str = TIMED, **more: Any) -> Mill:
    """A mill that publishes `from_time` and `why`."""
    named = f'{window}, start="from_time", end=None'
    return sums(folder, spark, window=named, trigger=trigger, lateness="20 s", output=renamed_contract, **more)


def reasons_of(mill: Mill, user: str = "a") -> dict[int, str]:
    """Why the windows of a user were published, by the second at which they start."""
    rows = [row for row in mill.published() if row["user"] == user]
    return {round((row["from_time"] - second(0)).total_seconds()): row["why"] for row in rows}


def test_a_row_says_whether_it_is_on_time_late_repaired_or_computed_anew(
    tmp_path: Path, spark: Any, writer: str
) -> None:
    mill = a_timed_mill(tmp_path, spark, writer=writer)
    for seconds in ((1, 2), (12, 3), (25,), (4,), (60,), (5,)):
        mill.feed([an_event(s) for s in seconds])
        mill.run()
    assert reasons_of(mill) == {0: "LATE", 10: "ON_TIME", 20: "ON_TIME"}
    assert set(mill.published()[0]) == {"from_time", "user", "why", "n", "amount"}
    done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    assert reasons_of(mill) == {0: "REPAIR", 10: "ON_TIME", 20: "ON_TIME"}
    [found] = verify(an_amendment(mill), Scope())
    assert (found.differences.compared, found.differences.count) == (3, 0)
    traced = lineage(mill.project, "sums", None, second(0), {"user": "a"})
    assert traced.row is not None
    assert [p.timing for p in traced.publications] == ["ON_TIME", "LATE", "REPAIR"]
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert reasons_of(mill) == {0: "BACKFILL", 10: "BACKFILL", 20: "BACKFILL"}
    [found] = verify(an_amendment(mill), Scope(sample=0.99))
    assert found.differences.count == 0


def test_windows_that_are_merged_ahead_say_it_too(tmp_path: Path, spark: Any) -> None:
    mill = a_timed_mill(tmp_path, spark, window=SLIDING)
    for seconds in ((1, 2), (1400,), (1390,)):
        mill.feed([an_event(s) for s in seconds])
        mill.run()
    said = reasons_of(mill)
    assert said[-1195] == said[-5] == "ON_TIME"
    assert said[195] == "LATE"
    assert verify_count(mill) == 0


def test_a_window_that_is_published_before_it_is_closed_is_early(tmp_path: Path, spark: Any) -> None:
    mill = a_timed_mill(tmp_path, spark, trigger='on_update", timing="why')
    mill.feed([an_event(1), an_event(12)])
    mill.run()
    assert reasons_of(mill) == {0: "ON_TIME", 10: "EARLY"}
    mill.feed([an_event(13), an_event(3), an_event(21)])
    mill.run()
    assert reasons_of(mill) == {0: "LATE", 10: "ON_TIME", 20: "EARLY"}


def test_other_names_for_the_columns_of_a_window_need_a_new_generation(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1), an_event(12)])
    mill.run()
    file, contract = (tmp_path / n for n in ("pipelines/pipeline.py", "data_contracts/sums.odcs.yaml"))
    file.write_text(file.read_text().replace(TUMBLING, f'{TUMBLING}, start="from_time", end=None'))
    contract.write_text("\n".join(x for x in renamed_contract(contract.read_text()).splitlines() if "why" not in x))
    changed = Mill(Project.load(tmp_path), spark, "sums")
    with pytest.raises(Incompatible, match=r"columns of the window: not there, now from_time"):
        changed.run()
    done(rebuild(an_amendment(changed)))
    assert changed.published() == [{"from_time": second(0), "user": "a", "n": 1, "amount": 1}]


def test_timing_may_be_added_later_and_is_null_where_nobody_wrote_it(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, output=lambda text: text + "      - {name: why, logicalType: string}\n", trigger=TIMED)
    timed = (tmp_path / "pipelines/pipeline.py", tmp_path / "data_contracts/sums.odcs.yaml")
    now = [path.read_text() for path in timed]
    timed[0].write_text(now[0].replace(', timing="why"', ""))
    timed[1].write_text(SUMS_CONTRACT)
    before = Mill(Project.load(tmp_path), spark, "sums")
    before.feed([an_event(1), an_event(12)])
    before.run()
    for path, text in zip(timed, now, strict=True):
        path.write_text(text)
    mill = Mill(Project.load(tmp_path), spark, "sums")
    mill.feed([an_event(22)])
    mill.run(clock=datetime.now(UTC))
    assert [(row["window_start"], row["why"]) for row in mill.published()] == [
        (second(0), None),
        (second(10), "ON_TIME"),
    ]
    assert verify_count(mill) == 0


def verify_count(mill: Mill) -> int:
    """How many rows are different."""
    [found] = verify(an_amendment(mill), Scope())
    return found.differences.count
