"""Every boundary of a batch, every way to fail there: what readers see in the end is what an unbroken run leaves.

The pipeline has two inputs, two published tables, and rejected, late and filtered records. The oracle is the unbroken
run, and a plain recomputation from the raw log.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.connect import ConnectServer
from support.projects import Mill
from support.recovery import WIDE_WRITES, a_wide_mill, recomputed
from tidemill import upkeep
from tidemill.core import failpoints
from tidemill.core.errors import CommitUnknown
from tidemill.core.failpoints import VARIABLE, Injected, boundaries_of
from tidemill.project import FILE, Project

pytestmark = pytest.mark.spark

READS = ("ledger", "bounds", "scan", "records:sums", "records:totals", "panes:sums", "panes:totals", "strays")
ELSEWHERE = ("claimed", "cancelled", "upkeep")
"""What only a second attempt, a changed declaration or a 64th batch comes to."""
LONG = pytest.mark.long

RAISED = [
    (f"{side}:{name}", again) for name in (*READS, *WIDE_WRITES) for side in ("before", "after") for again in (0, 1)
]
SHORT_RAISED = {(f"after:{name}", 0) for name in WIDE_WRITES}

Fresh = Callable[..., Mill]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Fresh:
    """Gives a copy of `a_wide_mill` in a folder: its first batch runs once."""
    made = tmp_path_factory.mktemp("wide")
    a_wide_mill(made, spark)

    def copy(folder: Path, remote: str = "") -> Mill:
        shutil.copytree(made, folder, dirs_exist_ok=True)
        if remote:
            file = folder / FILE
            file.write_text(file.read_text().replace("[spark]", f'[spark]\nremote = "{remote}"'))
        return Mill(Project.load(folder), spark, "wide")

    return copy


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, fresh: Fresh) -> dict[str, list[dict[str, Any]]]:
    """Every table after a run in which nothing fails, which is what the raw log gives."""
    mill = fresh(tmp_path_factory.mktemp("whole"))
    mill.catch_up()
    tables = mill.everything()
    assert {name: len(rows) for name, rows in tables.items()} == {"sums": 9, "totals": 5, "quarantine": 2, "late": 6}
    assert {name: tables[name] for name in ("sums", "totals")} == recomputed(mill)
    return tables


def test_no_boundary_is_left_out(tmp_path: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[str] = []
    monkeypatch.setattr(failpoints, "_reach", lambda side, name, _: met.append(name) if side == "before" else None)
    mill = fresh(tmp_path)
    mill.catch_up()
    listed = {b.name for b in boundaries_of(mill.project.pipeline("wide"))}
    assert set(met) == listed - set(ELSEWHERE)
    assert set(met) == {*READS, *WIDE_WRITES}


def test_every_write_of_a_batch_is_inside_a_boundary(
    tmp_path: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[str] = []

    def answered() -> None:
        here = failpoints._inside.get()
        places.append(here[0] if here else "outside")

    for module in ("tables.deltars", "ledger.ledger"):
        monkeypatch.setattr(f"tidemill.{module}.answered", answered)
    fresh(tmp_path).run(drain=True)
    assert sorted(places) == sorted(WIDE_WRITES)


@pytest.mark.parametrize(
    ("place", "again"),
    [case if case in SHORT_RAISED else pytest.param(*case, marks=LONG) for case in RAISED],
)
def test_a_step_that_fails_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, fresh: Fresh, whole: Any, monkeypatch: pytest.MonkeyPatch, place: str, again: int
) -> None:
    mill = fresh(tmp_path)
    monkeypatch.setenv(VARIABLE, f"{place}=raise")
    with pytest.raises(Injected):
        mill.run(drain=True)
    for _ in range(again):
        # A retry does not come to every step: the plan is there, and after the commit nothing is left to do.
        fail_or_commit(mill)
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == whole


def fail_or_commit(mill: Mill) -> None:
    try:
        mill.run(drain=True)
    except Injected:
        return


@pytest.mark.parametrize("place", WIDE_WRITES)
def test_an_answer_that_is_lost_changes_nothing_in_the_end(
    tmp_path: Path, fresh: Fresh, whole: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mill = fresh(tmp_path)
    monkeypatch.setenv(VARIABLE, f"{place}=lose")
    if place.startswith("state:"):
        # Rows without a transaction cannot be recognised: the attempt gives up, and its slice never counts.
        with pytest.raises(CommitUnknown, match="was lost"):
            mill.run(drain=True)
    else:
        assert mill.run(drain=True).attempt == 1
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == whole


@pytest.mark.parametrize("action", ["before:claimed=raise", "after:claimed=raise", "claimed=lose"])
@pytest.mark.parametrize("first", [pytest.param(w, marks=() if w == "audited" else LONG) for w in WIDE_WRITES[:-1]])
def test_a_retry_that_fails_at_its_claim_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, fresh: Fresh, whole: Any, monkeypatch: pytest.MonkeyPatch, first: str, action: str
) -> None:
    mill = fresh(tmp_path)
    monkeypatch.setenv(VARIABLE, f"{first}=raise")
    with pytest.raises(Injected):
        mill.run(drain=True)
    monkeypatch.setenv(VARIABLE, action)
    fail_or_commit(mill)
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == whole


@pytest.mark.parametrize("action", ["before:cancelled=raise", "after:cancelled=raise", "cancelled=lose"])
def test_a_cancellation_that_fails_changes_nothing_in_the_end(
    tmp_path: Path, fresh: Fresh, whole: Any, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    mill = fresh(tmp_path)
    monkeypatch.setenv(VARIABLE, "state:sums=raise")
    with pytest.raises(Injected):
        mill.run(drain=True)
    contract = tmp_path / "data_contracts" / "totals.odcs.yaml"
    contract.write_text(contract.read_text().replace("version: 1.0.0", "version: 1.0.1"))
    changed = Mill(Project.load(tmp_path), mill.session, "wide")
    monkeypatch.setenv(VARIABLE, action)
    fail_or_commit(changed)
    monkeypatch.delenv(VARIABLE)
    changed.catch_up()
    assert changed.everything() == whole


@pytest.mark.parametrize("action", ["before:upkeep=raise", "after:upkeep=raise", "upkeep=lose"])
def test_upkeep_that_fails_changes_nothing_in_the_end(
    tmp_path: Path, fresh: Fresh, whole: Any, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    mill = fresh(tmp_path)
    monkeypatch.setattr(upkeep, "EVERY", 1)
    monkeypatch.setenv(VARIABLE, action)
    mill.run(drain=True)
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == whole


KILLED = """
import sys
from tidemill.project import Project
from tidemill.running import Order, run_batches
list(run_batches(Project.load(sys.argv[1]), "wide", Order(drain=True)))
"""


@pytest.mark.long
@pytest.mark.parametrize(("place", "again"), RAISED)
def test_a_process_that_is_killed_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, fresh: Fresh, whole: Any, connect: ConnectServer, place: str, again: int
) -> None:
    mill = fresh(tmp_path, connect.remote)
    environment = {**os.environ, VARIABLE: f"{place}=kill"}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    for number in range(1 + again):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == -signal.SIGKILL or (number and done.returncode == 0), done.stderr[-3000:]
    mill.catch_up()
    assert mill.everything() == whole
