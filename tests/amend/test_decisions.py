"""A blocked batch waits for a person: it is accepted, diverted or audited again, and the ledger says by whom."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from support.projects import Mill, an_event, rows_of, sums
from tidemill.core.errors import AmendmentError, AuditBlocked
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.protocol.events import Decided, Decision
from tidemill.core.repair.side_outputs import Selection
from tidemill.repair.deciding import decide
from tidemill.repair.repair import repair

pytestmark = pytest.mark.spark

AT_MOST = """
    quality:
      - {type: library, metric: rowCount, mustBeLessThan: 2, severity: error}
"""


def strict(text: str) -> str:
    """A table of two rows is refused."""
    return text.rstrip() + AT_MOST


def blocked(folder: Path, spark: Any, writer: str = "delta-rs") -> Mill:
    """A batch is published, the next one is blocked: it would publish two rows."""
    mill = sums(folder, spark, output=strict, writer=writer)
    mill.feed([an_event(1), an_event(15)])
    mill.run()
    mill.feed([an_event(16, "b"), an_event(30)])
    with pytest.raises(AuditBlocked, match="tidemill audit show sums"):
        mill.run()
    with pytest.raises(AuditBlocked):
        mill.run()
    return mill


def decision(mill: Mill, what: Decision) -> int:
    """Somebody decides."""
    reason = Reason(by="somebody", why="they know better")
    return decide(mill.project.ledger("sums"), "sums", what, reason, datetime.now(UTC))


def test_an_accepted_batch_is_published_as_it_is(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = blocked(tmp_path, spark, writer)
    assert decision(mill, Decision.ACCEPT) == 2
    assert mill.run().batch_id == 2
    assert [(r["user"], r["n"]) for r in mill.published()] == [("a", 1), ("a", 1), ("b", 1)]
    [decided] = [e.event for e in mill.project.ledger("sums").entries() if isinstance(e.event, Decided)]
    assert (decided.by, decided.why, decided.decision) == ("somebody", "they know better", Decision.ACCEPT)


def test_a_diverted_batch_goes_to_quarantine_whole_and_comes_back_by_a_replay(
    tmp_path: Path, spark: Any, writer: str
) -> None:
    mill = blocked(tmp_path, spark, writer)
    decision(mill, Decision.DIVERT)
    commit = mill.run()
    account = commit.accounts["events"]
    assert (account.read, account.rejected, commit.published) == (2, 2, {})
    aside = rows_of(mill.project.table_uri("sums", "quarantine"))
    assert {reason for r in aside for reason in r["reasons"]} == {
        "diverted: batch diverted by somebody: they know better"
    }
    assert len(mill.published()) == 1
    mill.feed([an_event(17)])
    mill.run()
    path = mill.project.folder / "data_contracts" / "sums.odcs.yaml"
    path.write_text(path.read_text().replace("mustBeLessThan: 2", "mustBeLessThan: 9"))
    done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    again = Mill(an_amendment(mill).project, spark, "sums")
    again.feed([an_event(60)])
    again.catch_up()
    assert sum(r["n"] for r in again.published()) == 6
    assert again.own("quarantine") == []


def test_a_batch_that_is_audited_again_is_blocked_again(tmp_path: Path, spark: Any) -> None:
    mill = blocked(tmp_path, spark)
    decision(mill, Decision.RETRY)
    with pytest.raises(AuditBlocked):
        mill.run()
    assert len(mill.published()) == 1


def test_there_is_nothing_to_decide_about_a_batch_that_is_not_blocked(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    with pytest.raises(AmendmentError, match="no batch is blocked"):
        decision(mill, Decision.ACCEPT)
