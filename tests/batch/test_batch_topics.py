"""Several topics and patterns: which topics a batch reads is decided in its plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from support.commands import type_command
from support.projects import EVENTS_CONTRACT, SUMS_CONTRACT, SUMS_PIPELINE, Mill, a_project, an_event
from tidemill.core.errors import DeclarationError, UnknownTopic
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.core.repair.selection import OfOffsets
from tidemill.inspect.verify import Scope, verify
from tidemill.repair.backfill import backfill
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.spark


def a_mill(folder: Path, spark: Any, read: str, *topics: str) -> Mill:
    """The pipeline `sums` over what `read` says."""
    text = SUMS_PIPELINE.replace('"events", contract', f"{read}, contract")
    for name, value in {"WINDOW": 'Tumbling("10 seconds")', "DELAY": "0 s", "LATENESS": "1 hour"}.items():
        text = text.replace(name, value)
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "sums": SUMS_CONTRACT}
    mill = Mill(a_project(folder, text.replace("TRIGGER", "on_update"), contracts), spark, "sums")
    for topic in topics:
        mill.log.create_topic(topic, partitions=1)
    return mill


def counted(mill: Mill) -> dict[str, int]:
    """Records of each user in all windows."""
    found: dict[str, int] = {}
    for row in mill.published():
        found[row["user"]] = found.get(row["user"], 0) + row["n"]
    return found


def test_named_topics_are_one_stream_with_an_account_each(tmp_path: Path, spark: Any) -> None:
    mill = a_mill(tmp_path, spark, '"de", "fr"', "de", "fr", "it")
    mill.feed([an_event(1), an_event(2, "b")], topic="de")
    mill.feed([an_event(3), b"{cut"], topic="fr")
    mill.feed([an_event(3)], topic="it")
    commit = mill.run()
    assert {t: (a.aggregated, a.rejected) for t, a in commit.accounts.items()} == {"de": (2, 0), "fr": (1, 1)}
    assert counted(mill) == {"a": 2, "b": 1}
    assert [r["topic"] for r in mill.own("quarantine")] == ["fr"]


def test_a_topic_that_a_pattern_finds_later_is_read_from_its_start(tmp_path: Path, spark: Any) -> None:
    mill = a_mill(tmp_path, spark, 'pattern="shop-.*", start="latest"', "shop-de", "web")
    mill.feed([an_event(1, "before")], topic="shop-de")
    assert mill.run().accounts["shop-de"].read == 0
    mill.log.create_topic("shop-fr", partitions=2)
    mill.feed([an_event(2, "fr")], topic="shop-fr", partition=1)
    mill.feed([an_event(3, "de")], topic="shop-de")
    mill.feed([an_event(3, "web")], topic="web")
    commit = mill.run()
    assert {t: at.offsets for t, at in commit.position.topics.items()} == {"shop-de": {0: 2}, "shop-fr": {0: 0, 1: 1}}
    assert counted(mill) == {"de": 1, "fr": 1}
    said = " ".join(type_command(tmp_path, "status", "sums").out.split())
    assert "shop-fr" in said
    assert "web" not in said


def test_a_second_try_reads_the_topics_of_the_plan_though_there_are_more_by_then(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = a_mill(tmp_path, spark, 'pattern="shop-.*"', "shop-de")
    mill.feed([an_event(1)], topic="shop-de")
    monkeypatch.setenv(VARIABLE, "after:published:sums=raise")
    with pytest.raises(Injected):
        mill.run()
    monkeypatch.delenv(VARIABLE)
    mill.log.create_topic("shop-fr", partitions=1)
    mill.feed([an_event(2)], topic="shop-fr")
    commit = mill.run()
    assert (commit.attempt, set(commit.accounts)) == (2, {"shop-de"})
    assert set(mill.run().accounts) == {"shop-de", "shop-fr"}
    assert counted(mill) == {"a": 2}


def test_what_a_pattern_read_can_be_read_again_and_taken_back(tmp_path: Path, spark: Any) -> None:
    mill = a_mill(tmp_path, spark, 'pattern="shop-.*"', "shop-de")
    mill.feed([an_event(1)], topic="shop-de")
    mill.run()
    mill.log.create_topic("shop-fr", partitions=1)
    mill.feed([an_event(2, "fr"), b"{cut"], topic="shop-fr")
    mill.run()
    done(backfill(an_amendment(mill), OfOffsets(since={TopicPartition("shop-fr", 0): 0}, until={})))
    assert all(found.agrees for found in verify(an_amendment(mill), Scope()))
    assert counted(mill) == {"a": 1, "fr": 1}
    done(rewind(an_amendment(mill), 1))
    assert counted(mill) == {"a": 1}
    assert set(mill.run().accounts) == {"shop-de", "shop-fr"}
    assert counted(mill) == {"a": 1, "fr": 1}


def test_a_topic_of_a_pattern_that_disappears_keeps_offset_and_state_and_batches_go_on(
    tmp_path: Path, spark: Any
) -> None:
    mill = a_mill(tmp_path, spark, 'pattern="shop-.*"', "shop-de", "shop-fr")
    mill.feed([an_event(1)], topic="shop-de")
    mill.feed([an_event(2, "fr"), an_event(3, "fr")], topic="shop-fr")
    mill.run()
    folder = Path(mill.project.settings.log) / "shop-fr"
    folder.rename(tmp_path / "elsewhere")
    mill.feed([an_event(2)], topic="shop-de")
    commit = mill.run()
    assert {t: at.offsets for t, at in commit.position.topics.items()} == {"shop-de": {0: 2}, "shop-fr": {0: 2}}
    assert counted(mill) == {"a": 2, "fr": 2}
    assert type_command(tmp_path, "status", "sums", "--json").json["partitions"][1]["missing"]
    (tmp_path / "elsewhere").rename(folder)
    mill.feed([an_event(4, "fr")], topic="shop-fr")
    assert mill.run().accounts["shop-fr"].read == 1
    assert counted(mill) == {"a": 2, "fr": 3}
    for topic in ("shop-de", "shop-fr"):
        mill.log.delete_topic(topic)
    with pytest.raises(UnknownTopic, match=r"shop-de-0 \(committed offset 2\)"):
        mill.run()


def test_a_pattern_that_matches_nothing_is_named_and_drains_nothing(tmp_path: Path, spark: Any) -> None:
    mill = a_mill(tmp_path, spark, 'pattern="shops-.*"', "shop-de")
    with pytest.raises(UnknownTopic, match=r"no topic matches 'shops-\.\*'; topics there: shop-de"):
        mill.run(drain=True)
    assert list(mill.project.ledger("sums").entries()) == []
    assert "no topic matches" in " ".join(type_command(tmp_path, "doctor", "--no-spark").out.split())


def test_an_open_batch_is_completed_though_a_topic_would_be_read_twice_by_then(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = a_mill(tmp_path, spark, '"shop-de"', "shop-de")
    file = tmp_path / "pipelines" / "pipeline.py"
    both = (
        '.union(pipeline.read(pattern=".*-fr", contract="events"), pipeline.read(pattern="shop-.r", contract="events"))'
    )
    file.write_text(file.read_text().replace(".filter(", f"{both}\n        .filter(", 1))
    for topic in ("web-fr", "shop-gr"):
        mill.log.create_topic(topic, partitions=1)
    mill = Mill(mill.project.load(tmp_path), spark, "sums")
    mill.feed([an_event(1)], topic="shop-de")
    monkeypatch.setenv(VARIABLE, "after:published:sums=raise")
    with pytest.raises(Injected):
        mill.run()
    monkeypatch.delenv(VARIABLE)
    mill.log.create_topic("shop-fr", partitions=1)
    assert mill.run().attempt == 2
    with pytest.raises(DeclarationError, match="topic `shop-fr` would be read twice"):
        mill.run()
    assert "would be read twice" in " ".join(type_command(tmp_path, "status", "sums").out.split())
