"""What an older version wrote is read, gone on with, and gone back in."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from amend.conftest import an_errand
from golden.make import a_project, tiny
from support.projects import ROOT, Mill, an_event
from tidemill.amend.repair import repair
from tidemill.amend.rewind import rewind
from tidemill.core.amendments import Aside
from tidemill.core.aside import Choice
from tidemill.core.errors import LedgerDamaged
from tidemill.core.events import FORMAT_VERSION
from tidemill.ledger.rows import entry_of
from tidemill.project import Project

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
        list(repair(an_errand(new), Aside.LATE, Choice()))
        new.run()
        new.feed([an_event(90), an_event(91)])
        new.feed([an_event(90)], partition=1)
        new.run()
        assert mill.everything() == new.everything()
        before = mill.everything()
        list(rewind(an_errand(mill), 2))
        mill.catch_up(drain=False)
        list(repair(an_errand(mill), Aside.LATE, Choice()))
        assert mill.everything() == before


def test_a_newer_format_is_refused_by_name() -> None:
    row = {"sequence": 7, "format_version": FORMAT_VERSION + 1, "event": "planned", "body": "{}", "recorded_at": None}
    with pytest.raises(LedgerDamaged, match=f"event 7 has format {FORMAT_VERSION + 1}") as refused:
        entry_of(row, "the ledger")
    assert "upgrade" in refused.value.fix
