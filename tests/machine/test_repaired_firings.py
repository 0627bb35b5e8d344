"""Repairs of tables of firings at their edges, with the engine's own fold, without Spark."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from support.commands import type_command
from support.firings import changed, firings
from support.landing import land
from support.projects import NO_SPARK, Mill, an_event, rows_of
from support.replayed_keys import PAIRS, a_mill, let_in, of_three_tables, widen
from tidemill.core.errors import AuditBlocked, OffsetsLost, TidemillError
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.protocol import failpoints
from tidemill.core.repair.side_outputs import Selection
from tidemill.project.project import Project
from tidemill.repair.repair import repair
from tidemill.run import batch

ODD = 2_000_000
"""An amount that is rejected until the contract is wider."""


def amounts(mill: Mill) -> list[tuple[str, int]]:
    return sorted((row["user"], row["amount"]) for row in mill.published())


def counted(folder: Path, window: str = "TumblingBuffer(CountPolicy(2))", **more: Any) -> Mill:
    """A buffer with a rejected record between others of its key, and records of another key."""
    mill = firings(folder, NO_SPARK, window, collect=False, **more)
    mill.feed([an_event(1, "a", 1), an_event(2, "b", 10)])
    mill.run()
    mill.feed([an_event(3, "a", ODD), an_event(4, "a", 3), an_event(5, "b", 20)])
    mill.run()
    mill.feed([an_event(6, "a", 4)])
    mill.run()
    return widen(mill)


def shown(mill: Mill) -> str:
    """What the dry run of a replay says."""
    told = type_command(mill.project.folder, "quarantine", "replay", mill.name, "--dry-run")
    return " ".join(told.out.split())


def test_only_rows_of_the_keys_are_replaced_since_the_batch_that_had_read_the_record(tmp_path: Path) -> None:
    mill = counted(tmp_path)
    assert amounts(mill) == [("a", 4), ("b", 30)]
    assert "all records of their keys since batch 2 are read again" in shown(mill)
    let_in(mill)
    assert amounts(mill) == [("a", 7), ("a", 1 + ODD), ("b", 30)]
    assert {row["user"]: row["batch_id"] for row in rows_of(mill.project.published_uri("firings"))} == {"a": 4, "b": 2}


def test_a_key_that_later_steps_rewrite_cannot_be_found_so_the_record_counts_now(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2))", collect=False)
    mill = changed(
        mill,
        '        .publish("firings"',
        '        .with_columns(USER="coalesce(user, user)")\n        .publish("firings"',
    )
    mill.feed([an_event(1, "a", 1), an_event(2, "a", ODD), an_event(3, "a", 3), an_event(4, "a", 4)])
    mill.run()
    mill = widen(mill)
    assert "they count after all records that their keys have read so far, because rows of firings do not" in shown(
        mill
    )
    let_in(mill)
    mill.feed([an_event(5, "a", 5)])
    mill.run()
    assert amounts(mill) == [("a", 4), ("a", 4 + ODD)]


@pytest.mark.parametrize("window", ["TumblingBuffer(CountPolicy(2), most_keys=5)"])
def test_where_other_keys_decide_what_is_forgotten_the_record_counts_now(tmp_path: Path, window: str) -> None:
    mill = counted(tmp_path, window)
    assert "which keys firings forgets follows from the records of all keys" in shown(mill)
    let_in(mill)
    assert amounts(mill) == [("a", 4), ("a", 4 + ODD), ("b", 30)]


def test_what_the_log_has_lost_lets_the_record_count_now(tmp_path: Path) -> None:
    mill = counted(tmp_path)
    mill.log.trim("events", 0, 3)
    assert "because the log no longer holds what would be read again: events-0: offsets 2 to 2" in shown(mill)
    let_in(mill)
    assert amounts(mill) == [("a", 4), ("a", 4 + ODD), ("b", 30)]


def test_topic_of_the_same_name_is_not_read_again(tmp_path: Path) -> None:
    mill = counted(tmp_path)
    mill.log.delete_topic("events")
    mill.log.create_topic("events", partitions=1)
    mill.feed([an_event(1, "a", 99)] * 9)
    assert "its offsets mean other records now" in shown(mill)
    [commit] = done_alone(mill)
    assert commit.position.firings_from is None
    assert amounts(mill) == [("a", 4), ("a", 4 + ODD), ("b", 30)]


def done_alone(mill: Mill) -> list[Any]:
    """A repair without the live batch after it."""
    return [next(iter(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection())))]


def test_a_repair_whose_records_the_log_loses_meanwhile_is_dropped_and_counts_them_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = counted(tmp_path)
    with monkeypatch.context() as patch:
        patch.setenv(failpoints.VARIABLE, "after:planned=raise")
        with suppress(TidemillError):
            let_in(mill)
    mill.log.trim("events", 0, 3)
    with pytest.raises(OffsetsLost, match="the repair was dropped before anything was published"):
        mill.run()
    let_in(mill)
    assert amounts(mill) == [("a", 4), ("a", 4 + ODD), ("b", 30)]


def test_a_file_of_a_landing_zone_that_is_gone_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2))", collect=False).project
    with (tmp_path / "tidemill.toml").open("a") as file:
        file.write(f'[log]\npath = "{tmp_path / "zone"}"\nlayout = "kafka-connect"\n')
    mill = Mill(Project.load(project.folder), NO_SPARK, "firings")
    files = []
    for first, events in ((0, [an_event(1, "a", ODD)]), (1, [an_event(2, "a", 2)]), (2, [an_event(3, "a", 3)])):
        files.append(land(tmp_path / "zone", first, events))
        mill.run()
    mill = widen(mill)
    with monkeypatch.context() as patch:
        patch.setenv(failpoints.VARIABLE, "after:planned=raise")
        with suppress(TidemillError):
            let_in(mill)
    files[1].unlink()
    with pytest.raises(OffsetsLost, match="no file holds events-0 offset 1; the repair was dropped"):
        mill.run()
    assert "no file holds events-0 offset 1" in shown(mill)
    let_in(mill)
    assert amounts(mill) == [("a", 5)]


def test_a_rule_about_the_whole_table_is_asked_when_a_repair_only_removes_rows(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2))", collect=False)
    mill = changed(mill, '        .publish("firings"', '        .filter("amount < 100")\n        .publish("firings"')
    contract = tmp_path / "data_contracts" / "firings.odcs.yaml"
    rule = "{metric: rowCount, mustBeGreaterThan: 0, customProperties: [{property: scope, value: table}]}"
    contract.write_text(f"{contract.read_text()}    quality:\n      - {rule}\n")
    mill.feed([an_event(1, "a", 1), an_event(2, "a", ODD), an_event(3, "a", 3)])
    mill.run()
    assert amounts(mill) == [("a", 4)]
    mill = widen(mill)
    with pytest.raises(AuditBlocked):
        let_in(mill)
    assert amounts(mill) == [("a", 4)]


def test_a_topic_is_told_of_rows_that_vanish_also_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    mill = a_mill(tmp_path, NO_SPARK, "replacing", collect=False)
    for values in ([an_event(1, "a", 1), an_event(18, "a", 2)], [an_event(9, "a", ODD), an_event(90, "a", 3)]):
        mill.feed(values)
        mill.feed([an_event(90, "z", 1)], partition=1)
        mill.run()
    mill = widen(mill)
    before = {row["window_start"] for row in mill.published() if row["user"] == "a"}
    monkeypatch.setattr(batch, "send", lambda *given: sent.append(given[3]))
    with monkeypatch.context() as patch:
        patch.setenv(failpoints.VARIABLE, "after:published:firings=raise")
        with suppress(TidemillError):
            let_in(mill)
    sent.clear()
    mill.run()
    after = {row["window_start"] for row in mill.published() if row["user"] == "a"}
    [[item]] = sent
    assert {row["window_start"] for row in item.gone.rows.to_pylist()} == before - after != set()
    changes = [(row["before"] is None, row["after"] == "null") for row in mill.own("corrections")]
    assert sorted(changes) == [(False, True), (True, False)]


def test_null_is_a_key_and_each_table_of_a_pipeline_gets_the_record_once(tmp_path: Path) -> None:
    mill = of_three_tables(tmp_path, NO_SPARK)
    let_in(widen(mill))
    assert sorted(mill.published(), key=lambda row: (row["user"] or "", row["amount"])) == [
        {"user": None, "n": 2, "amount": 7},
        {"user": None, "n": 2, "amount": 1 + ODD},
        {"user": "b", "n": 2, "amount": 2},
    ]
    assert sorted(row["amount"] for row in mill.published("pairs") if row["user"] is None) == sorted(PAIRS)
    assert [row["amount"] for row in mill.published("minutes") if row["user"] is None] == [13 + ODD]


def test_a_repair_that_counted_its_records_now_changes_nothing_for_those_of_later_batches(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2))", collect=False)
    mill.feed([an_event(1, "a", 1), an_event(2, "a", ODD), an_event(2, "b", 10)])
    mill.run()
    mill = changed(mill, "!= 'nobody'", "!= 'z'")
    mill.feed([an_event(3, "a", 2), an_event(3, "nobody", 3)])
    mill.run(from_now=Reason(by="me", why="nobody counts"))
    mill.feed([an_event(4, "b", ODD + 1), an_event(5, "b", 20)])
    mill.run()
    mill = widen(mill)
    replay = ("quarantine", "replay", "firings", "--by", "me", "--why", "wider", "--batch")
    said = type_command(tmp_path, *replay, "1", "--mixed", session=lambda _: NO_SPARK).out
    assert "because firings means something else since batch 2" in " ".join(said.split())
    said = type_command(tmp_path, *replay, "3", session=lambda _: NO_SPARK).out
    assert "all records of their keys since batch 3 are read again" in " ".join(said.split())
    mill.feed([an_event(6, "a", 4), an_event(6, "b", 40)])
    mill.run()
    assert amounts(mill) == [("a", 3), ("a", ODD + 4), ("b", 60), ("b", ODD + 11)]
