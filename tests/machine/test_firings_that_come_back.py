"""A table of firings that the declaration lacked for some batches, on the tiny engine."""

from __future__ import annotations

from pathlib import Path

from amend.conftest import an_amendment, done
from machine.test_told_replays import ALL, changed, since, sums, with_totals
from support.projects import Mill, an_event
from tidemill.core.plan.amendments import Reason
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill


def fed(mill: Mill, *amounts: int) -> None:
    for amount in amounts:
        mill.feed([an_event(amount, "a", amount)])
        mill.run(from_now=Reason(by="ana", why="back"))


def test_rows_of_batches_that_were_superseded_without_the_table_are_replaced_when_it_is_back(
    tmp_path: Path, tiny: None
) -> None:
    mill = with_totals(tmp_path)
    fed(mill, 1, 2, 3, 4)
    both = (tmp_path / "pipelines" / "pipeline.py").read_text()
    mill = changed(mill, both[both.index("    events.window(TumblingBuffer") :], "")
    # It hides the slice of the batch that had published a row, and leaves the row.
    done(backfill(an_amendment(mill), since(2)))
    (tmp_path / "pipelines" / "pipeline.py").write_text(both)
    mill = Mill(Project.load(tmp_path), mill.session, mill.name)
    fed(mill, 5, 6)
    assert sums(mill) == [1 + 2 + 3]
    done(backfill(an_amendment(mill), ALL))
    assert sums(mill) == [1 + 2 + 3, 4 + 5 + 6]
