"""Slices of many batches become one: readers see nothing of it, and every way back goes on."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from support.projects import NOW, Mill, an_event, rows_of, sums
from tidemill.core.errors import EngineError, Incompatible
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.plan.work import Kind
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.repair.state_compaction import Folding
from tidemill.inspect.lineage import lineage
from tidemill.inspect.verify import Scope, verify
from tidemill.maintain.maintenance import maintain
from tidemill.maintain.state_compaction import due, fold
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.spark

WIDE = {"window": 'Sliding("60 seconds", "20 seconds")', "lateness": "20 s"}
EASY = Folding(group=4, overlap=1.0, groups=1)


def feed(mill: Mill, batches: range) -> None:
    """A batch of three records each, 7 seconds after the one before."""
    for number in batches:
        mill.feed([an_event(7 * number), an_event(7 * number + 3, "b", number), an_event(max(7 * number - 9, 0))])
        mill.run()


def visible_rows(mill: Mill) -> Counter[int]:
    """How many rows of state each visible batch has."""
    slices = mill.project.ledger(mill.name).view().position.slices
    rows = rows_of(mill.project.table_uri(mill.name, "state", "sums"))
    return Counter(r["batch_id"] for r in rows if slices.attempt_of(r["batch_id"]) == r["attempt"])


def is_right(mill: Mill) -> bool:
    """Whether what is published equals one computation over the log."""
    [found] = verify(an_amendment(mill), Scope())
    return found.differences.compared > 0 and found.differences.count == 0


@pytest.fixture
def folded(tmp_path: Path, spark: Any, writer: str) -> Mill:
    """Twelve batches, of which eleven are folded into three."""
    mill = sums(tmp_path, spark, writer=writer, **WIDE)
    feed(mill, range(12))
    before, rows = mill.everything(), visible_rows(mill).total()
    commits = done(fold(an_amendment(mill), EASY))
    assert [(c.kind, c.batch_id) for c in commits] == [(Kind.FOLD, 13), (Kind.FOLD, 14), (Kind.FOLD, 15)]
    assert all(not c.published and not any(a.read for a in c.accounts.values()) for c in commits)
    assert mill.everything() == before
    assert sorted(visible_rows(mill)) == [12, 13, 14, 15]
    assert visible_rows(mill).total() < rows
    return mill


def test_batches_after_a_fold_publish_what_they_would_without(folded: Mill, tmp_path: Path, spark: Any) -> None:
    feed(folded, range(12, 16))
    folded.catch_up()
    unbroken = sums(tmp_path / "unbroken", spark, **WIDE)
    feed(unbroken, range(16))
    unbroken.catch_up()
    assert folded.everything() == unbroken.everything()
    assert is_right(folded)


def test_late_records_join_windows_whose_state_was_folded(folded: Mill) -> None:
    folded.feed([an_event(1, amount=100)])
    folded.run()
    assert len(folded.own("late")) == 1
    done(repair(an_amendment(folded), SideOutput.LATE, Selection()))
    assert folded.own("late") == []
    assert is_right(folded)


def test_what_was_folded_is_read_again_as_a_whole(folded: Mill) -> None:
    before = folded.everything()
    place = TopicPartition("events", 0)
    commits = done(backfill(an_amendment(folded), OfOffsets(since={place: 4}, until={place: 5})))
    assert sum(a.read for c in commits for a in c.accounts.values()) == 9
    assert folded.everything() == before
    assert sorted(visible_rows(folded)) == [12, 14, 15, 16]
    feed(folded, range(12, 14))
    assert is_right(folded)


def test_a_number_is_traced_through_a_fold(folded: Mill) -> None:
    found = lineage(an_amendment(folded).project, "sums", None, NOW, {"user": "a"})
    [whole] = [c for c in found.contributions if c.counts and c.batch_id == 13]
    assert [str(r) for r in whole.folded] == ["batches 1 to 3"]
    assert [str(r) for r in whole.ranges["events"]] == ["events-0 [0, 9)"]
    assert {c.batch_id for c in found.contributions if not c.counts} >= {1, 2, 3}
    assert "fold" not in {p.timing.lower() for p in found.publications}


@pytest.mark.long
@pytest.mark.parametrize("writer", ["delta-rs"])
def test_a_rewind_goes_back_behind_a_fold_until_maintenance_has_removed_what_was_folded(folded: Mill) -> None:
    then = folded.everything()
    feed(folded, range(12, 24))
    after = folded.everything()
    done(rewind(an_amendment(folded), 12))
    assert folded.everything() == then
    assert sorted(visible_rows(folded)) == list(range(1, 13))
    while folded.everything() != after:
        folded.run(limit=3)
    for task in maintain(folded.project, "sums", keep=timedelta(0), now=datetime.now(UTC)):
        assert "superseded" not in task.what or task.count > 0
    assert is_right(folded)
    with pytest.raises(EngineError, match="maintenance has removed state of batch 11"):
        done(rewind(an_amendment(folded), 11))


def test_nothing_is_folded_that_another_declaration_built(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    feed(mill, range(9))
    pipeline = tmp_path / "pipelines" / "pipeline.py"
    pipeline.write_text(pipeline.read_text().replace('Sum("amount")', 'Sum("amount + 1")'))
    amendment = an_amendment(mill)
    assert due(amendment, amendment.ledger.view(), EASY) == ()
    assert done(fold(amendment, EASY)) == []
    with pytest.raises(Incompatible, match="was built by another declaration"):
        done(backfill(amendment, OfOffsets(since={}, until={})))
    assert amendment.ledger.view().open_batch is None
