"""Partitions that a lifecycle rule takes away and brings back, and topics that somebody deletes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from machine.conftest import again, an_amendment, ids, run
from support.commands import type_command
from support.projects import NO_SPARK, Mill, an_event
from tidemill.core.errors import AmendmentError, OffsetsLost, UnknownTopic
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.repair.selection import OfOffsets, OfTimes
from tidemill.inspect.verify import Scope, verify
from tidemill.repair import backfill as filling
from tidemill.repair.gone import declare_gone
from tidemill.repair.rebuild import _Building, rebuild
from tidemill.repair.rewind import preview, rewind
from tidemill.run.batch import NothingToDo

PLACE = TopicPartition("events", 1)


def land(mill: Mill, first: int, seconds: list[int], *, partition: int = 0) -> Path:
    """A file of a landing zone."""
    folder = Path(mill.project.settings.log) / "events" / f"partition={partition}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"events+{partition}+{first:010}.json"
    path.write_bytes(b"".join(an_event(s) + b"\n" for s in seconds))
    return path


@pytest.fixture
def landed(a_mill: Callable[..., Mill]) -> Mill:
    """Two partitions of a landing zone, which two batches have read; the second one is gone."""
    mill = a_mill(trigger="on_update")
    mill.log.delete_topic("events")
    file = mill.project.folder / "tidemill.toml"
    file.write_text(file.read_text() + '[log]\nlayout = "kafka-connect"\n')
    land(mill, 0, [1, 2])
    land(mill, 0, [3, 4], partition=1)
    run(mill)
    land(mill, 2, [5, 6])
    run(mill)
    take_away(mill)
    land(mill, 4, [30])
    return mill


def folder_of(mill: Mill) -> Path:
    return Path(mill.project.settings.log) / "events" / "partition=1"


def take_away(mill: Mill) -> None:
    folder_of(mill).rename(folder_of(mill).with_name("elsewhere"))


def bring_back(mill: Mill) -> None:
    folder_of(mill).with_name("elsewhere").rename(folder_of(mill))


def offsets(mill: Mill) -> Any:
    return again(mill).project.ledger("sums").view().position.topics["events"].offsets


def counted(mill: Mill) -> int:
    return sum(row["n"] for row in again(mill).published())


def test_nothing_moves_while_a_partition_is_missing_and_what_comes_back_is_not_read_twice(landed: Mill) -> None:
    with pytest.raises(OffsetsLost, match=r"events-1 \(committed offset 2\).*nothing was moved"):
        run(landed)
    assert (offsets(landed), counted(landed)) == ({0: 4, 1: 2}, 6)
    said = type_command(landed.project.folder, "plan", "sums", "--dry-run")
    assert (said.code, "events-1 (committed offset 2)" in said.err) == (5, True)
    bring_back(landed)
    land(landed, 2, [31], partition=1)
    assert run(landed).accounts["events"].read == 2
    assert (offsets(landed), counted(landed)) == ({0: 5, 1: 3}, 8)


def test_a_person_declares_it_gone_and_it_goes_on_where_it_ended_when_it_comes_back(landed: Mill) -> None:
    said = type_command(
        landed.project.folder, "gone", "sums", "events-1", "--by", "me", "--why", "[moved]", session=lambda _: NO_SPARK
    )
    assert said.code == 0, said.err
    assert (offsets(landed), counted(landed)) == ({0: 5, 1: 2}, 7)
    assert "gone, says me: [moved]" in " ".join(type_command(landed.project.folder, "status", "sums").out.split())
    shown = type_command(landed.project.folder, "status", "sums", "--json").json["partitions"][1]
    assert (shown["missing"], shown["gone"]) == (True, {"by": "me", "why": "[moved]"})
    land(landed, 5, [40])
    assert run(landed).position.gone is not None
    bring_back(landed)
    land(landed, 2, [41], partition=1)
    assert run(landed).position.gone is None
    assert (offsets(landed), counted(landed)) == ({0: 6, 1: 3}, 9)


def test_what_comes_back_from_a_later_start_is_refused(landed: Mill) -> None:
    ids(declare_gone(an_amendment(landed), [PLACE]))
    land(landed, 7, [32], partition=1)
    with pytest.raises(OffsetsLost, match="events-1: offsets 2 to 6 are gone"):
        run(landed)


def test_only_what_was_read_and_is_missing_can_be_declared_gone(landed: Mill) -> None:
    with pytest.raises(AmendmentError, match=r"has read nothing of events-2; it has read events-0, events-1"):
        ids(declare_gone(an_amendment(landed), [TopicPartition("events", 2)]))
    with pytest.raises(AmendmentError, match=r"events-0 is not gone: the log shows events-0 \[0, 5\)"):
        ids(declare_gone(an_amendment(landed), [TopicPartition("events", 0)]))
    assert type_command(landed.project.folder, "gone", "sums", "events", session=lambda _: NO_SPARK).code == 5
    assert len(ids(declare_gone(an_amendment(landed), [PLACE]))) == 1
    assert ids(declare_gone(an_amendment(landed), [PLACE])) == []


def test_what_would_read_it_again_names_it(landed: Mill) -> None:
    ids(declare_gone(an_amendment(landed), [PLACE]))
    lost = "events-1: offsets 0 to 1"
    for attempt in (
        lambda: preview(an_amendment(landed), 0),
        lambda: ids(rewind(an_amendment(landed), 0)),
        lambda: filling.preview(an_amendment(landed), OfOffsets(since={TopicPartition("events", 0): 0}, until={})),
        lambda: ids(filling.backfill(an_amendment(landed), OfOffsets(since={PLACE: 0}, until={}))),
        lambda: ids(rebuild(an_amendment(landed))),
    ):
        with pytest.raises(OffsetsLost, match=lost.replace("offsets 0 to 1", "(offsets 0 to 1|all offsets from 0 on)")):
            attempt()
    assert ids(rewind(an_amendment(landed), 2))
    with pytest.raises(OffsetsLost, match="committed offset 2"):
        run(landed)


def test_verify_says_what_it_cannot_read_and_explain_goes_on(landed: Mill) -> None:
    ids(declare_gone(an_amendment(landed), [PLACE]))
    with pytest.raises(OffsetsLost, match=r"events-1 \[0, 2\) cannot be read: topic events now has 1 partition"):
        list(verify(an_amendment(landed), Scope()))
    window = ("--window", "2026-01-01T00:00:00Z", "--key", "user=a")
    said = type_command(landed.project.folder, "explain", "sums", *window, session=lambda _: NO_SPARK)
    assert (said.code, "events-1 [0, 2)" in said.out) == (0, True), said.err


@pytest.fixture
def away(a_mill: Callable[..., Mill]) -> Mill:
    """Two partitions, which two batches have read; the files of the second one are away, as a mount may be."""
    mill = a_mill(trigger="on_update", partitions=2)
    for second in (1, 3):
        mill.feed([an_event(second)])
        mill.feed([an_event(second + 1)], partition=1)
        run(mill)
    files_of(mill).rename(mill.project.folder / "away")
    return mill


def files_of(mill: Mill) -> Path:
    return Path(mill.project.settings.log) / "events" / mill.log.topic("events").topic_id / "1"


def test_what_would_read_again_a_partition_whose_files_are_away_names_it(away: Mill) -> None:
    whole = again(away).everything()
    for attempt in (
        lambda: run(away),
        lambda: filling.preview(an_amendment(away), OfOffsets(since={}, until={})),
        lambda: ids(filling.backfill(an_amendment(away), OfOffsets(since={}, until={}))),
        lambda: ids(filling.backfill(an_amendment(away), OfOffsets(since={PLACE: 1}, until={PLACE: 2}))),
        lambda: ids(rewind(an_amendment(away), 1)),
        lambda: ids(rebuild(an_amendment(away))),
    ):
        with pytest.raises(OffsetsLost, match="events-1"):
            attempt()
        assert (again(away).everything(), offsets(away)) == (whole, {0: 2, 1: 2})
    (away.project.folder / "away").rename(files_of(away))
    ids(rebuild(an_amendment(away)))
    assert (again(away).everything(), offsets(away)) == (whole, {0: 2, 1: 2})


def test_a_rebuild_that_saw_less_than_was_published_replaces_nothing(
    away: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = again(away).everything()
    with monkeypatch.context() as patch:
        # The partition goes right after the look at the log with which a rebuild begins.
        patch.setattr(_Building, "check_log", lambda _: None)
        with pytest.raises(OffsetsLost, match="events-1: read to 0, before to 2; the tables were not changed"):
            ids(rebuild(an_amendment(away)))
    assert (again(away).everything(), offsets(away)) == (whole, {0: 2, 1: 2})
    (away.project.folder / "away").rename(files_of(away))
    ids(rebuild(an_amendment(away)))
    assert (again(away).everything(), offsets(away)) == (whole, {0: 2, 1: 2})


def test_a_named_topic_that_disappears_is_refused_and_its_offsets_are_kept(landed: Mill) -> None:
    topic = folder_of(landed).parent
    topic.rename(topic.with_name("_events"))
    with pytest.raises(UnknownTopic, match=r"events-0 \(committed offset 4\), events-1 \(committed offset 2\)"):
        run(landed)
    shown = type_command(landed.project.folder, "status", "sums", "--json").json
    assert [(p["partition"], p["committed"], p["missing"]) for p in shown["partitions"]] == [(0, 4, True), (1, 2, True)]
    assert "events" in shown["problem"]
    topic.with_name("_events").rename(topic)
    bring_back(landed)
    assert run(landed).accounts["events"].read == 1
    assert isinstance(run(landed), NothingToDo)


def test_times_choose_nothing_of_what_is_missing(a_mill: Callable[..., Mill]) -> None:
    mill = a_mill(trigger="on_update", partitions=2)
    mill.feed([an_event(1)])
    mill.feed([an_event(2)], partition=1)
    run(mill)
    file = Path(mill.project.settings.log) / "events" / "topic.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"partitions": 1}))
    with pytest.raises(OffsetsLost, match="events-1: offsets 0 to 0; nothing"):
        filling.preview(an_amendment(mill), OfTimes(since=None, until=None))
    with pytest.raises(OffsetsLost, match=r"events-1 \(committed offset 1\)"):
        run(mill)
