"""Records of closed windows of firings, let in later, on the tiny engine: none of them disappears."""

from __future__ import annotations

from pathlib import Path

import pytest

from amend.conftest import an_amendment, done
from support.commands import type_command
from support.firings import firings
from support.projects import NO_SPARK, Mill, an_event
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.side_outputs import Selection
from tidemill.repair.repair import repair

pytestmark = pytest.mark.usefixtures("tiny")

EACH = 'trigger=Repeatedly(AfterCount(1)), accumulation="discarding"'


def a_mill(folder: Path, window: str = "Tumbling('10 s')", trigger: str = EACH) -> Mill:
    return firings(
        folder,
        NO_SPARK,
        window,
        trigger=trigger,
        collect=False,
        bounds=not window.startswith(("Global", "TumblingBuffer(Count")),
    )


def offsets(mill: Mill, table: str) -> list[int]:
    return [row["offset"] for row in mill.own(table)]


def test_records_that_come_too_late_for_their_windows_are_put_aside_again(tmp_path: Path) -> None:
    mill = a_mill(tmp_path)
    mill.feed([an_event(1, "a", 1), an_event(30, "a", 2)])
    mill.run()
    mill.feed([an_event(2, "a", 3)])
    mill.run()
    [commit] = done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    assert commit.accounts["events"].late == 1
    assert offsets(mill, "late") == [2]
    assert len(mill.published()) == 2
    looked = " ".join(type_command(tmp_path, "late", "admit", "firings", "--dry-run").out.split())
    assert "records of firings count only in windows that still take records; the others stay late" in looked
    told = " ".join(type_command(tmp_path, "late", "admit", "firings", session=lambda _: NO_SPARK).out.split())
    assert "1 record late again, because the windows of their table of firings are closed for good" in told
    assert "state was removed" not in told


@pytest.mark.parametrize(
    ("window", "trigger"), [("Tumbling('10 s')", EACH), ("TumblingBuffer(TimePolicy('10 s'))", "")]
)
def test_a_replayed_record_goes_to_the_late_table_if_its_window_was_closed_when_it_came(
    tmp_path: Path, window: str, trigger: str
) -> None:
    mill = a_mill(tmp_path, window, trigger)
    mill.feed([an_event(1, "a", 1), an_event(2, "a", 2_000_000), an_event(31, "a", 2_000_001), an_event(30, "a", 2)])
    mill.run()
    mill.feed([an_event(3, "a", 2_000_002)])
    mill.run()
    path = tmp_path / "data_contracts" / "events.odcs.yaml"
    path.write_text(path.read_text().replace("maximum: 1000000", "maximum: 3000000"))
    [commit] = done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    assert (commit.accounts["events"].aggregated, commit.accounts["events"].late) == (2, 1)
    assert (offsets(mill, "quarantine"), offsets(mill, "late")) == ([], [4])
    mill.run(drain=True)
    assert sum(row["amount"] for row in mill.published()) == 1 + 2_000_000 + 2_000_001 + 2


def test_a_global_window_with_a_trigger_is_closed_by_the_end_of_the_log(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, "Global()")
    mill.feed([an_event(1, "a", 1)])
    mill.run(drain=True)
    mill.feed([an_event(2, "a", 2)])
    mill.run()
    assert offsets(mill, "late") == [1]
    assert [row["amount"] for row in mill.published()] == [1]


def test_a_buffer_goes_on_after_the_end_of_the_log(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, "TumblingBuffer(CountPolicy(2))", "")
    mill.feed([an_event(1, "a", 1)])
    mill.run(drain=True)
    mill.feed([an_event(2, "a", 2)])
    mill.run()
    assert offsets(mill, "late") == []
    assert [row["amount"] for row in mill.published()] == [3]
