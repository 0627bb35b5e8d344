"""A new generation is built beside the published one, and one batch switches: after a change, after a loss."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from support.damage import cut_files
from support.projects import NOW, Mill, an_event, rows_of, sums
from tidemill.core.errors import AmendmentError, Fenced, Incompatible
from tidemill.core.plan.work import Kind
from tidemill.core.protocol import failpoints
from tidemill.ledger.process import this_process
from tidemill.project.project import Project
from tidemill.repair.rebuild import rebuild
from tidemill.repair.rewind import rewind
from tidemill.run.batch import run_batch
from tidemill.run.claiming import Request

pytestmark = pytest.mark.spark

SECONDS = (1, 2, 11, 21, 31, 45)


def a_mill(folder: Path, spark: Any, **settings: Any) -> Mill:
    """Three batches of two records."""
    mill = sums(folder, spark, **settings)
    for start in range(0, len(SECONDS), 2):
        mill.feed([an_event(s, "abc"[s % 3]) for s in SECONDS[start : start + 2]])
        mill.run()
    return mill


def changed(mill: Mill) -> Mill:
    """The windows become twice as long: state of the old ones is of no use."""
    path = mill.project.folder / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace('Tumbling("10 seconds")', 'Tumbling("20 seconds")'))
    return again(mill)


def again(mill: Mill) -> Mill:
    """The same mill as another process finds it."""
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)


def test_an_incompatible_change_is_refused_until_a_new_generation_takes_over(
    tmp_path: Path, spark: Any, writer: str
) -> None:
    mill = a_mill(tmp_path / "mill", spark, writer=writer)
    before = mill.published()
    mill = changed(mill)
    mill.feed([an_event(70)])
    with pytest.raises(Incompatible, match=r"tumbling\(10 seconds\), now tumbling\(20 seconds\)") as refused:
        mill.run()
    assert "tidemill rebuild sums" in refused.value.fix
    assert mill.published() == before
    commits = done(rebuild(an_amendment(mill, most=3)))
    assert commits[-1].kind is Kind.SWITCH
    mill = again(mill)
    mill.feed([an_event(90)])
    mill.catch_up()
    anew = sums(tmp_path / "anew", spark, window='Tumbling("20 seconds")')
    anew.feed([an_event(s, "abc"[s % 3]) for s in SECONDS] + [an_event(70), an_event(90)])
    anew.catch_up()
    assert mill.published() == anew.published()
    with pytest.raises(AmendmentError):
        done(rewind(an_amendment(mill), commits[0].batch_id))


def test_runs_of_the_old_generation_are_fenced(tmp_path: Path, spark: Any) -> None:
    mill = a_mill(tmp_path, spark)
    old = again(mill)
    assert old.project.ledger("sums").view().position.batch_id == 3
    stale = old.project.ledger("sums")
    done(rebuild(an_amendment(mill)))
    mill.feed([an_event(100)])
    request = Request(executor=this_process(), clock=NOW)
    with pytest.raises(Fenced, match="generation 2 has taken over"):
        run_batch(old.project, "sums", request, session=lambda: spark, ledger=stale)


LONG = pytest.mark.long


@pytest.mark.parametrize(
    "lost",
    [
        "ledger",
        "files of the ledger",
        *(pytest.param(p, marks=LONG) for p in ("everything of its own", "state", "published")),
    ],
)
def test_what_was_lost_is_made_again_from_the_log(tmp_path: Path, spark: Any, lost: str) -> None:
    mill = a_mill(tmp_path, spark)
    before = mill.published()
    own = Path(mill.project.table_uri("sums"))
    folder = {"ledger": own / "ledger", "state": own / "state", "published": Path(mill.project.published_uri("sums"))}
    if lost == "files of the ledger":
        cut_files(folder["ledger"])
    else:
        shutil.rmtree(folder.get(lost, own))
    done(rebuild(an_amendment(mill)))
    mill = again(mill)
    assert mill.published() == before
    mill.feed([an_event(60), an_event(80)])
    mill.catch_up()
    assert sum(r["n"] for r in mill.published()) == len(SECONDS) + 2


def test_a_partition_that_was_silent_for_long_holds_back_no_window_of_a_new_generation(
    tmp_path: Path, spark: Any
) -> None:
    mill = sums(tmp_path, spark, partitions=2)
    mill.feed([an_event(1), an_event(2, "b"), an_event(31)])
    mill.run()
    assert mill.published() == []
    mill.feed([an_event(32)])
    mill.run(clock=datetime.now(UTC) + timedelta(minutes=6))
    before = mill.published()
    assert len(before) == 2
    done(rebuild(an_amendment(mill)))
    assert again(mill).published() == before


PLACES = [
    (side, place)
    for place in ("superseded", "planned", "published:sums", "committed", "generation")
    for side in ("before", "after")
]
SHORT = [("after", "superseded"), ("before", "published:sums"), ("before", "generation")]


@pytest.mark.parametrize(("side", "place"), [pytest.param(*p, marks=() if p in SHORT else LONG) for p in PLACES])
def test_a_rebuild_that_dies_goes_on(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, side: str, place: str
) -> None:
    mill = a_mill(tmp_path, spark)
    before = mill.published()
    # The batch that switches, where the place is one that every batch passes.
    which = "" if place in ("superseded", "generation") else "@4+"
    monkeypatch.setenv(failpoints.VARIABLE, f"{side}:{place}{which}=raise")
    with pytest.raises(failpoints.Injected):
        done(rebuild(an_amendment(mill)))
    monkeypatch.delenv(failpoints.VARIABLE)
    assert mill.published() == before
    if (side, place) != ("after", "generation"):
        done(rebuild(an_amendment(mill)))
    mill = again(mill)
    assert mill.project.generations.current("sums") == 2
    assert mill.published() == before
    assert {r["batch_id"] for r in rows_of(mill.project.published_uri("sums"))} == {1}
