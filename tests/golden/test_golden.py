"""What an older version wrote is read, gone on with, and gone back in."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from golden.make import a_project, tiny
from support.projects import NOW, ROOT, Mill, an_event
from tidemill.core.errors import LedgerDamaged
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.protocol.events import FORMAT_VERSION
from tidemill.core.protocol.transitions import fold
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.inspect.verify import Scope, verify
from tidemill.ledger.rows import entry_of
from tidemill.log.reading import read_records
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind

GOLDEN = sorted(Path(__file__).parent.glob("format-*.tar.gz"))


def restored(archive: Path, folder: Path) -> Mill:
    """The project as that version left it."""
    with tarfile.open(archive) as found:
        found.extractall(folder)
    (folder / "tidemill.toml").write_text(f'[spark]\njars = "{ROOT / ".tidemill" / "jars"}"\n')
    return Mill(Project.load(folder), None, "sums")  # type: ignore[arg-type]


def test_this_version_has_a_golden_lake() -> None:
    assert f"format-{FORMAT_VERSION}.tar.gz" in [path.name for path in GOLDEN]


@pytest.mark.parametrize("archive", GOLDEN, ids=lambda path: path.name)
def test_an_open_batch_of_an_older_version_is_completed_and_all_goes_on(archive: Path, tmp_path: Path) -> None:
    mill = restored(archive, tmp_path / "golden")
    view = mill.project.ledger("sums").view()
    assert view.position.batch_id == 4
    assert view.open_batch is not None
    with tiny():
        assert (mill.run(executor=view.open_batch.executor).batch_id, view.open_batch.attempt) == (5, 1)
        mill.feed([an_event(90), an_event(91)])
        mill.feed([an_event(90)], partition=1)
        mill.run()
        new = a_project(tmp_path / "new")
        list(repair(an_amendment(new), SideOutput.LATE, Selection()))
        new.run()
        new.feed([an_event(90), an_event(91)])
        new.feed([an_event(90)], partition=1)
        new.run()
        assert mill.everything() == new.everything()
        before = mill.everything()
        list(rewind(an_amendment(mill), 2))
        mill.catch_up(drain=False)
        list(repair(an_amendment(mill), SideOutput.LATE, Selection()))
        assert mill.everything() == before


@pytest.mark.spark
@pytest.mark.parametrize("archive", GOLDEN, ids=lambda path: path.name)
def test_a_lake_of_an_older_version_is_continued_backfilled_and_verified(
    archive: Path, tmp_path: Path, spark: Any
) -> None:
    mill = replace(restored(archive, tmp_path), session=spark)
    opened = mill.project.ledger("sums").view().open_batch
    assert opened is not None
    assert [name.startswith("tumbling") for name in opened.plan.position.shapes["sums"].values()].count(True) == 1
    assert mill.run(executor=opened.executor).batch_id == opened.plan.batch_id
    mill.feed([an_event(90), an_event(91)])
    mill.feed([an_event(90)], partition=1)
    mill.run()
    done = list(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert done[-1].position.backfill is None
    assert len(mill.own("late")) == 0
    [found] = verify(an_amendment(mill), Scope())
    assert found.agrees
    assert found.differences.compared == len(mill.published()) == 9
    assert by_window(mill.published()) == from_the_raw_log(mill)
    fold(entry.event for entry in mill.project.ledger("sums").entries())


def by_window(rows: list[dict[str, Any]]) -> dict[tuple[float, str], tuple[int, int]]:
    return {((r["window_start"] - NOW).total_seconds(), r["user"]): (r["n"], r["amount"]) for r in rows}


def from_the_raw_log(mill: Mill) -> dict[tuple[float, str], tuple[int, int]]:
    """Count and sum of every closed window, by a few lines of Python over the log."""
    found: dict[tuple[float, str], tuple[int, int]] = {}
    bounds = mill.log.bounds("events")
    for record in read_records(mill.log.scan(mill.log.topic("events").topic_id, list(bounds.values()))):
        try:
            event = json.loads(record.value)
        except ValueError:
            continue
        second = (datetime.fromisoformat(event["ts"]) - NOW).total_seconds()
        start, user = second - second % 10, event["user"] or "unknown"
        if user != "nobody" and start + 10 <= 90:
            n, amount = found.get((start, user), (0, 0))
            found[start, user] = (n + 1, amount + event["amount"])
    return found


def test_a_newer_format_is_refused_by_name() -> None:
    row = {"sequence": 7, "format_version": FORMAT_VERSION + 1, "event": "planned", "body": "{}", "recorded_at": None}
    with pytest.raises(LedgerDamaged, match=f"event 7 has format {FORMAT_VERSION + 1}") as refused:
        entry_of(row, "the ledger")
    assert "upgrade" in refused.value.fix
