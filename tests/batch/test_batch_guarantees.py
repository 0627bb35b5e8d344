"""Guarantees that are asked for: at most once gives a failed attempt up, and a gap is skipped and reported."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.projects import NOW, Mill, an_event, sums
from tidemill.core.errors import OffsetsLost
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.core.time.spans import PaneSpan
from tidemill.inspect.lineage import lineage
from tidemill.project.project import Project

pytestmark = pytest.mark.spark


def declared(mill: Mill, **more: str) -> Mill:
    """The same pipeline with another guarantee."""
    path = mill.project.folder / "pipelines" / "pipeline.py"
    options = "".join(f', {name}="{value}"' for name, value in more.items())
    path.write_text(path.read_text().replace('every="1 minute"', f'every="1 minute"{options}'))
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)


def tried_twice(mill: Mill, monkeypatch: pytest.MonkeyPatch, place: str) -> Any:
    """The commit of a batch of three records whose first attempt failed at a place."""
    mill.feed([an_event(second) for second in (1, 2, 15)])
    monkeypatch.setenv(VARIABLE, f"{place}=raise")
    with pytest.raises(Injected):
        mill.run()
    monkeypatch.delenv(VARIABLE)
    return mill.run()


@pytest.mark.parametrize("place", ["after:planned", "after:state:sums", "after:published:sums"])
def test_what_a_failed_attempt_had_begun_counts_at_most_once(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mill = declared(sums(tmp_path, spark), guarantee="at_most_once")
    commit = tried_twice(mill, monkeypatch, place)
    account = commit.accounts["events"]
    assert (account.read, account.shed, account.aggregated) == (3, 3, 0)
    mill.feed([an_event(16, "b"), an_event(30, "b")])
    mill.catch_up()
    published = {(r["user"], r["window_start"].second): r["n"] for r in mill.published()}
    fired_before_it_failed = {("a", 0): 2} if place == "after:published:sums" else {}
    assert published == {("b", 10): 1, ("b", 30): 1, **fired_before_it_failed}


@pytest.mark.parametrize("place", ["after:planned", "after:published:sums", "before:committed"])
def test_what_a_failed_attempt_had_begun_counts_at_least_once(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mill = declared(sums(tmp_path, spark), guarantee="at_least_once")
    commit = tried_twice(mill, monkeypatch, place)
    assert (commit.attempt, commit.accounts["events"].aggregated) == (2, 3)
    assert [r["n"] for r in mill.published()] == [2]


def test_a_gap_is_skipped_and_reported_where_that_is_declared(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1)])
    mill.run()
    for second in (11, 12, 21):
        mill.feed([an_event(second)])
    mill.log.trim("events", 0, 3)
    with pytest.raises(OffsetsLost, match="offsets 1 to 2 are gone") as refused:
        mill.run()
    assert 'on_loss="skip"' in refused.value.fix
    mill = declared(mill, on_loss="skip")
    commit = mill.run()
    assert (commit.skipped, commit.accounts["events"].read) == (2, 1)
    [plan] = [e.event.plan for e in mill.project.ledger("sums").entries() if getattr(e.event, "plan", None)][1:]
    assert [str(r) for r in plan.live.skipped] == ["events-0 [1, 3)"]
    first, last = (NOW.timestamp() * 1e6, (NOW.timestamp() + 20) * 1e6)
    assert commit.incomplete == {"sums": PaneSpan(int(first), int(last))}
    mill.feed([an_event(50)])
    following = mill.run()
    assert (following.skipped, following.incomplete) == (0, None)
    found = {
        second: lineage(mill.project, "sums", None, NOW + timedelta(seconds=second), {"user": "a"})
        for second in (20, 50)
    }
    assert [str(r) for r in found[20].lacking] == ["events-0 [1, 3)"]
    assert found[50].lacking == ()
