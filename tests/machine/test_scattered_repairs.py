"""Many records here and there in the log, repaired in bounded batches: linear work, each record once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from machine.conftest import again, an_amendment, ids
from support.projects import Mill, an_event
from tidemill.cli.views.side_outputs import show_repair
from tidemill.core.errors import TidemillError
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.work import Kind
from tidemill.core.protocol import failpoints
from tidemill.core.protocol.events import Planned
from tidemill.core.repair.side_outputs import Selection
from tidemill.repair import repair as repairing
from tidemill.repair.repair import batches_needed, repair
from tidemill.tables.deltars import DeltaRsTable

MOST = 10
TOO_LARGE = 2_000_000


@pytest.fixture
def mill(a_mill: Callable[..., Mill], monkeypatch: pytest.MonkeyPatch) -> Mill:
    """Five batches, in each of which every second record of 14 is rejected, by a rule that is then taken back."""
    monkeypatch.setattr(repairing, "MOST", MOST)
    made = a_mill()
    for batch in range(5):
        made.feed([an_event(10 * batch + 1, "abcd"[n % 4], TOO_LARGE if n % 2 else 1) for n in range(14)])
        made.run()
    assert len(made.own("quarantine")) == 35
    return made


def mended(mill: Mill) -> None:
    """Larger amounts are allowed."""
    path = mill.project.folder / "data_contracts" / "events.odcs.yaml"
    path.write_text(path.read_text().replace("maximum: 1000000", "maximum: 100000000"))


def plans(mill: Mill) -> list[BatchPlan]:
    """Those of repairs."""
    events = (entry.event for entry in again(mill).project.ledger("sums").entries())
    return [e.plan for e in events if isinstance(e, Planned) and e.plan.kind is Kind.REPAIR]


def test_scattered_records_are_repaired_in_bounded_batches_as_many_as_a_dry_run_says(
    mill: Mill, capsys: pytest.CaptureFixture[str]
) -> None:
    mended(mill)
    show_repair(an_amendment(mill), SideOutput.QUARANTINE, Selection(), mixed=False, full=False, as_json=False)
    assert "that takes 4 batches" in capsys.readouterr().out
    commits = list(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    assert [c.accounts["events"].aggregated for c in commits] == [10, 10, 10, 5]
    assert [plan.records for plan in plans(mill)] == [10, 10, 10, 5]
    assert mill.own("quarantine") == []
    assert sum(row["n"] for row in again(mill).published()) == 4 * 14, "the last window is open"


def test_each_batch_reads_the_rows_that_it_takes_and_not_all_that_wait(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    read = DeltaRsTable.read

    def counted(table: DeltaRsTable, **how: Any) -> Any:
        rows = read(table, **how)
        if table.spec.name == "quarantine":
            seen.append(rows.num_rows)
        return rows

    monkeypatch.setattr(DeltaRsTable, "read", counted)
    mended(mill)
    assert len(ids(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))) == 4
    # Three times each: to plan, to execute, and to keep the others of the same batches.
    assert sum(seen) <= 3 * (35 + 4 * 7)


@pytest.mark.parametrize("place", ["planned", "published:sums", "quarantine", "committed"])
def test_what_fails_between_two_batches_goes_on_with_the_same_command(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mended(mill)
    first = list(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))[1].batch_id
    assert first == 7
    for side in ("before", "after"):
        with monkeypatch.context() as patch, suppress(TidemillError):
            patch.setattr(failpoints, "_lost", set())
            patch.setenv(failpoints.VARIABLE, f"{side}:{place}@7=raise")
            list(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    list(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    assert [plan.records for plan in plans(mill)] == [10, 10, 10, 5]
    assert sum(row["n"] for row in again(mill).published()) == 4 * 14


def test_what_fails_again_stays_and_is_not_taken_twice(mill: Mill) -> None:
    commits = list(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection(reason="amount")))
    assert [c.accounts["events"].rejected for c in commits] == [10, 10, 10, 5]
    assert len(mill.own("quarantine")) == 35
    chosen = an_amendment(mill).side_tables.choose(SideOutput.QUARANTINE, Selection(offset=1))
    assert chosen is not None
    assert batches_needed(an_amendment(mill), SideOutput.QUARANTINE, chosen) == 1
