"""Late records are admitted and quarantined ones replayed: once, and only their windows change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from amend.conftest import an_amendment, done
from support.projects import Mill, an_event, rows_of
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.plan.work import Kind
from tidemill.core.repair.side_outputs import Selection
from tidemill.repair.repair import repair

pytestmark = pytest.mark.spark


def counts(mill: Mill) -> dict[tuple[int, str], tuple[int, int]]:
    """Published count and sum by second of the window's start and user."""
    return {
        (r["window_start"].minute * 60 + r["window_start"].second, r["user"]): (r["n"], r["amount"])
        for r in mill.published()
    }


def test_an_admitted_late_record_changes_its_window_and_no_other(late_mill: Callable[..., Mill], writer: str) -> None:
    mill = late_mill(writer)
    before = {r["window_start"]: r for r in rows_of(mill.project.published_uri("sums"))}
    assert counts(mill) == {(0, "a"): (1, 1), (0, "b"): (1, 1), (10, "a"): (1, 1), (20, "b"): (1, 1), (40, "a"): (1, 1)}
    [commit] = done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    assert (commit.kind, commit.batch_id, commit.accounts["events"].read) == (Kind.REPAIR, 3, 2)
    assert counts(mill) == {
        (0, "a"): (2, 11),
        (0, "b"): (1, 1),
        (0, "c"): (1, 1),
        (10, "a"): (1, 1),
        (20, "b"): (1, 1),
        (40, "a"): (1, 1),
    }
    after = rows_of(mill.project.published_uri("sums"))
    assert {r["batch_id"] for r in after if r["user"] == "b" or r["window_start"] not in before} <= {1, 2}
    assert mill.own("late") == []
    assert done(repair(an_amendment(mill), SideOutput.LATE, Selection())) == []


def test_values_before_and_after_a_repair_are_kept(late_mill: Callable[..., Mill], writer: str) -> None:
    mill = late_mill(writer)
    done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    found = {json.loads(r["key"])["user"]: r for r in rows_of(mill.project.table_uri("sums", "corrections"))}
    assert sorted(found) == ["a", "c"]
    assert (json.loads(found["a"]["before"])["n"], json.loads(found["a"]["after"])["n"]) == (1, 2)
    assert (found["c"]["before"], json.loads(found["c"]["after"])["n"]) == (None, 1)


def test_only_the_chosen_late_records_are_admitted(late_mill: Callable[..., Mill]) -> None:
    mill = late_mill()
    done(repair(an_amendment(mill), SideOutput.LATE, Selection(offset=7)))
    assert counts(mill)[0, "c"] == (1, 1)
    assert counts(mill)[0, "a"] == (1, 1)
    assert [r["offset"] for r in mill.own("late")] == [5]


def test_a_late_record_of_an_open_window_waits_for_the_window(tmp_path: Path, spark: Any) -> None:
    from support.projects import sums

    mill = sums(tmp_path, spark, window='Sliding("20 seconds", "10 seconds")')
    mill.feed([an_event(35)])
    mill.run()
    mill.feed([an_event(14, amount=7)])
    mill.run()
    assert [r["offset"] for r in mill.own("late")] == [1]
    done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    mill.catch_up()
    assert counts(mill)[0, "a"] == (1, 7)
    assert counts(mill)[10, "a"] == (1, 7)
    assert counts(mill)[20, "a"] == (1, 1)


def contract_that_takes_names(mill: Mill) -> None:
    """What was wrong is repaired: an amount may be a larger number."""
    path = mill.project.folder / "data_contracts" / "events.odcs.yaml"
    path.write_text(path.read_text().replace("maximum: 1000000", "maximum: 100000000"))


def test_replayed_records_pass_once_and_what_still_fails_goes_back_with_its_reasons(
    late_mill: Callable[..., Mill], writer: str
) -> None:
    mill = late_mill(writer)
    mill.feed([an_event(60, "d", amount=2_000_000), an_event(70)])
    mill.run()
    assert len(mill.own("quarantine")) == 2
    contract_that_takes_names(mill)
    [commit] = done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    account = commit.accounts["events"]
    assert (account.read, account.aggregated, account.rejected) == (2, 1, 1)
    assert counts(mill)[60, "d"] == (1, 2_000_000)
    [left] = rows_of(mill.project.table_uri("sums", "quarantine"))
    assert (left["offset"], left["batch_id"], bytes(left["value"])) == (6, commit.batch_id, b"{cut")
    before = mill.everything()
    [again] = done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    assert again.accounts["events"].aggregated == 0
    assert mill.everything() == before
    assert done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection(reason="amount"))) == []


def test_records_are_replayed_after_retention_took_them_from_the_log(late_mill: Callable[..., Mill]) -> None:
    mill = late_mill()
    mill.log.trim("events", 0, 9)
    [commit] = done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    assert commit.accounts["events"].aggregated == 2


def test_a_repair_in_several_batches_takes_each_record_once(late_mill: Callable[..., Mill], writer: str) -> None:
    mill = late_mill(writer)
    commits = done(repair(an_amendment(mill, most=1), SideOutput.LATE, Selection()))
    assert [c.accounts["events"].read for c in commits] == [1, 1]
    assert counts(mill)[0, "a"] == (2, 11)
    assert DeltaTable(mill.project.published_uri("sums")).transaction_version("sums/sums") == commits[-1].batch_id
