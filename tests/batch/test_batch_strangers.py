"""An attempt that comes back to a changed world: other code, another plan, another table in the place of the old.

It ends with an error, fenced or refused, and changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.damage import Change, clone, create_again, lose, put_back, restore, tree
from support.projects import Mill, an_event, somebody, sums
from support.recovery import finish, paused, recomputed
from tidemill.core.errors import Fenced, Incompatible, LedgerDamaged, TableDamaged
from tidemill.core.protocol.events import Planned
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.project.project import Project
from tidemill.run.claiming import Claim

pytestmark = pytest.mark.spark

LONG = pytest.mark.crash
LEAKED = {
    "spark.databricks.delta.write.txnAppId": "sums/sums",
    "spark.databricks.delta.write.txnVersion": "999999",
    "spark.databricks.delta.commitInfo.userMetadata": "leaked",
}


def renewed(mill: Mill) -> Mill:
    """The project after its declaration was edited to another that means the same."""
    pipeline = Path(mill.project.folder) / "pipelines" / "pipeline.py"
    pipeline.write_text(pipeline.read_text().replace("!= 'nobody'", "<> 'nobody'"))
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)


@pytest.mark.parametrize("place", ["before:audited", pytest.param("before:state:sums", marks=LONG)])
def test_an_attempt_of_older_code_is_fenced_by_newer_code(
    tmp_path: Path, wide: Any, whole: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mill = wide(tmp_path)
    seen: dict[str, Any] = {}

    def meanwhile() -> None:
        new = renewed(mill)
        finish(new, 0)
        seen.update(new.everything())

    happened = paused(monkeypatch, place, meanwhile)
    with pytest.raises(Fenced):
        mill.run(executor=somebody("the slower"))
    assert happened
    assert mill.everything() == seen
    renewed(mill).catch_up()
    assert mill.everything() == whole


def test_older_code_does_not_complete_what_newer_code_may_have_published(
    tmp_path: Path, wide: Any, whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = wide(tmp_path)
    assert old.project.pipeline("wide"), "it is loaded before the files change"
    new = renewed(old)
    monkeypatch.setenv(VARIABLE, "published:sums=raise")
    with pytest.raises(Injected):
        new.run(drain=True)
    monkeypatch.delenv(VARIABLE)
    before = tree(tmp_path / "lake")
    with pytest.raises(Incompatible, match="planned by another version"):
        old.run(drain=True)
    assert tree(tmp_path / "lake") == before
    new.catch_up()
    assert new.everything() == whole


@pytest.mark.parametrize("number", [2, pytest.param(1, marks=LONG)])
def test_an_attempt_with_an_older_plan_is_fenced(
    tmp_path: Path, wide: Any, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Even one that nobody gave the claim, and that nobody checked before it began."""
    mill = wide(tmp_path)
    finish(mill, 0)
    plans = {e.event.plan.batch_id: e.event.plan for e in mill.project.ledger("wide").entries() if _plans(e.event)}
    older = replace(plans[number], clock=plans[number].clock - timedelta(minutes=1))
    log = mill.project.log()
    scans = {name: log.scan(topic.topic_id, topic.ranges) for name, topic in older.topics.items()}
    monkeypatch.setattr("tidemill.run.batch.claim_batch", lambda *_: Claim(plan=older, attempt=1, scans=scans))
    before = tree(tmp_path / "lake")
    with pytest.raises(Fenced):
        mill.run()
    assert tree(tmp_path / "lake") == before


def _plans(event: object) -> bool:
    return isinstance(event, Planned)


@pytest.mark.parametrize(
    "writer", [pytest.param("spark", marks=pytest.mark.long), pytest.param("delta-rs", marks=LONG)]
)
def test_a_transaction_that_leaked_into_the_session_stops_no_write(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = sums(tmp_path, spark, writer=writer)
    mill.feed([an_event(1), an_event(2), an_event(20), b"{cut"])
    try:
        for name, value in LEAKED.items():
            spark.conf.set(name, value)
        commit = mill.run(drain=True)
    finally:
        for name in LEAKED:
            spark.conf.unset(name)
    assert commit.tables.keys() == {"state of sums", "sums", "quarantine"}
    assert [r["n"] for r in mill.published()] == [2, 1]
    assert len(mill.own("quarantine")) == 1


TABLES = {"before:published:sums": "published/sums", "before:state:sums": "pipelines/wide/state/sums"}
CHANGES: dict[str, Change] = {
    "created again": create_again,
    "restored": restore,
    "cloned": clone(app_id="wide/sums", version=1),
    "put back": put_back,
    "lost": lose,
}
SHORT = {("before:published:sums", "created again", False), ("before:published:sums", "cloned", True)}
CASES = [(place, how, overtaken) for place in TABLES for how in CHANGES for overtaken in (False, True)]


@pytest.mark.parametrize(
    ("place", "how", "overtaken"), [c if c in SHORT else pytest.param(*c, marks=LONG) for c in CASES]
)
def test_a_zombie_does_not_write_a_table_that_is_not_the_one_it_knew(  # noqa: PLR0917
    tmp_path: Path, wide: Any, monkeypatch: pytest.MonkeyPatch, place: str, how: str, overtaken: bool
) -> None:
    mill, lake = wide(tmp_path), tmp_path / "lake"
    seen: dict[str, bytes] = {}

    def meanwhile() -> None:
        if overtaken:
            finish(mill, 1)
        CHANGES[how](lake / TABLES[place])
        seen.update(tree(lake))

    happened = paused(monkeypatch, place, meanwhile)
    with pytest.raises(Fenced if overtaken else (TableDamaged, LedgerDamaged)):
        mill.run(executor=somebody("the slower"))
    assert happened
    assert tree(lake) == seen


@pytest.mark.long
def test_the_slower_of_two_is_fenced_also_when_nothing_was_damaged(
    tmp_path: Path, wide: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the others did looks like damage to it: newer transactions, and a ledger that does not know them."""
    mill = wide(tmp_path)
    paused(monkeypatch, "before:state:totals", lambda: finish(mill, 2))
    with pytest.raises(Fenced, match=r"attempt 1 at batch 2 is fenced: the ledger has gone on, and table state of"):
        mill.run(executor=somebody("the slower"))
    mill.catch_up()
    assert {name: mill.published(name) for name in ("sums", "totals")} == recomputed(mill)
