"""Numbers that another declaration made are not held against the one of now, on the real engine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from machine.declaring import declare
from support.projects import NOW, Mill, an_event, sums
from tidemill.core.errors import Incompatible
from tidemill.core.plan.amendments import Reason
from tidemill.core.plan.slices import BatchRange
from tidemill.core.repair.selection import OfOffsets
from tidemill.inspect.lineage import lineage
from tidemill.inspect.verify import Scope, Verified, verify
from tidemill.ledger.process import this_process
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill
from tidemill.run.batch import run_batch
from tidemill.run.claiming import Request

pytestmark = pytest.mark.spark


def verified(mill: Mill) -> Verified:
    [found] = verify(an_amendment(mill), Scope())
    return found


def test_windows_of_another_meaning_are_left_out_of_the_proof_and_named(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, lateness="1 minute")
    mill.feed([an_event(1, "b"), an_event(2), an_event(12, "b")])
    mill.run()
    file = tmp_path / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace("!= 'nobody'", "!= 'b'"))
    mill = Mill(Project.load(tmp_path), spark, "sums")
    mill.feed([an_event(13), an_event(22, "b"), an_event(23), an_event(33), an_event(41)])
    with pytest.raises(Incompatible):
        verified(mill)
    request = Request(executor=this_process(), clock=datetime.now(UTC), from_now=Reason(by="ana", why="b is no user"))
    run_batch(mill.project, "sums", request, session=lambda: spark)
    found = verified(mill)
    assert found.agrees
    assert found.differences.compared == 2
    assert found.earlier == (BatchRange(1, 2),)
    starts = {(r["window_start"] - NOW).total_seconds() for r in mill.published()}
    assert starts == {0, 10, 20, 30}
    [left_out] = found.left_out
    assert [s for s in starts if int(NOW.timestamp() + s) * 1_000_000 in left_out] == [0, 10]
    assert found.since is not None
    assert (found.since.batch_id, found.since.by) == (2, "ana")
    window = lineage(mill.project, "sums", None, NOW.replace(second=10), {"user": "a"})
    assert window.since == found.since


def test_only_the_table_that_waits_for_a_decision_is_left_out_of_the_proof_until_a_backfill_has_filled_it(
    tmp_path: Path, spark: Any
) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1, "b"), an_event(2), an_event(12, "b")])
    mill.run()
    declare(mill, {"sums": "nobody", "others": "nobody"})
    mill = Mill(Project.load(tmp_path), spark, "sums")
    mill.feed([an_event(13), an_event(33)])
    compared = verify(an_amendment(mill), Scope())
    first = next(compared)
    assert (first.table, first.differences.compared, first.agrees) == ("sums", 2, True)
    with pytest.raises(Incompatible, match="publishes what earlier batches left out"):
        next(compared)
    request = Request(executor=this_process(), clock=datetime.now(UTC), from_now=Reason(by="ana", why="more"))
    run_batch(mill.project, "sums", request, session=lambda: spark)
    one, other = verify(an_amendment(mill), Scope())
    assert (one.differences.compared, other.differences.compared) == (4, 0)
    assert other.since is not None
    assert other.since.event_time == int((NOW.timestamp() + 12) * 1_000_000)
    list(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    one, other = verify(an_amendment(mill), Scope())
    assert (one.agrees, other.agrees) == (True, True)
    assert (one.differences.compared, other.differences.compared) == (4, 4)
    assert other.since is not None
    assert other.since.event_time is None
