"""A pipeline that reads what another one sends, and has its watermark: windows of windows.

The file log does not take messages, so `support.sending` lets it: each batch appends its rows before its commit, as on
Kafka; tests/kafka/test_kafka_chained.py has it with messages of a broker.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.commands import type_command
from support.projects import EVENTS_CONTRACT, NO_SPARK, SUMS_CONTRACT, Mill, a_project, an_event
from support.sending import let_files_send
from tidemill.core.errors import ConfigError
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.log.records import NewRecord
from tidemill.project.project import Project

PIPELINES = """
from tidemill import Count, Pipeline, Sum, Tumbling

with Pipeline("seconds", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts", delay="2 s")
    tens = events.key_by("user").window(Tumbling("10 seconds")).aggregate(n=Count(), amount=Sum("amount"))
    tens = tens.with_columns(ts="timestamp_micros(unix_micros(window_end) - 1)")
    tens.publish("sums", contract="sums", topic="sums-sent")

with Pipeline("minutes", every="1 minute") as pipeline:
    sums = pipeline.read("sums-sent", contract="sent", event_time="ts", watermark_of="SENDER")
    minutes = sums.window(Tumbling("1 minute")).aggregate(windows=Count(), n=Sum("n"))
    minutes.publish("by_minute", contract="by_minute")
"""
SENT = EVENTS_CONTRACT.replace("events", "sent").replace("EXTRA", "keep") + (
    "      - {name: n, logicalType: integer, required: true}\n"
)
BY_MINUTE = """
apiVersion: v3.1.0
kind: DataContract
id: by_minute
version: 1.0.0
status: active
schema:
  - name: by_minute
    logicalType: object
    properties:
      - {name: window_start, logicalType: timestamp, required: true, primaryKey: true}
      - {name: window_end, logicalType: timestamp, required: true}
      - {name: windows, logicalType: integer, required: true}
      - {name: n, logicalType: integer, required: true}
"""


@pytest.fixture(autouse=True)
def _sending(monkeypatch: pytest.MonkeyPatch) -> None:
    let_files_send(monkeypatch)


class Chain:
    """Both pipelines in one project."""

    def __init__(self, folder: Path, sender: str = "seconds") -> None:
        events = EVENTS_CONTRACT.replace("EXTRA", "keep")
        sums = SUMS_CONTRACT + "      - {name: ts, logicalType: timestamp, required: true}\n"
        contracts = {"events": events, "sums": sums, "sent": SENT, "by_minute": BY_MINUTE}
        self.project = a_project(folder, PIPELINES.replace("SENDER", sender), contracts)
        self.first, self.second = (Mill(self.project, NO_SPARK, name) for name in ("seconds", "minutes"))
        self.first.log.create_topic("events", partitions=1)
        self.first.log.create_topic("sums-sent", partitions=2)

    @property
    def sent(self) -> int:
        """How many records the topic between them has."""
        return sum(len(held) for held in self.first.log.bounds("sums-sent").values())

    def send(self, *events: bytes, drain: bool = False) -> None:
        """A batch of the first pipeline."""
        self.first.feed(events)
        self.first.run(drain=drain)

    def watermark(self, name: str) -> int:
        return self.project.ledger(name).view().position.watermark

    def minutes(self) -> dict[datetime, tuple[int, int]]:
        rows = self.second.published("by_minute")
        return {row["window_start"]: (row["windows"], row["n"]) for row in rows}


def test_windows_of_windows_are_complete_and_none_comes_late(tmp_path: Path) -> None:
    chain, expected = Chain(tmp_path), Counter[datetime]()
    for batch in range(12):
        events = [(20 * batch + second, "ab"[second % 2]) for second in (0, 3, 7, 12, 15)]
        chain.send(*(an_event(second, user) for second, user in events))
        for second, _ in events:
            at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
            expected[at.replace(second=0)] += 1
        chain.second.run(limit=3 if batch % 3 else None)
        assert chain.watermark("minutes") <= chain.watermark("seconds")
        assert all(n == expected[start] for start, (_, n) in chain.minutes().items())
    assert len(chain.minutes()) >= 3
    chain.send(drain=True)
    chain.second.catch_up(drain=False)
    assert chain.watermark("minutes") == END, "the end of the log is told, too"
    assert {start: n for start, (_, n) in chain.minutes().items()} == expected
    assert chain.second.own("late") == []


def test_the_watermark_moves_with_the_sender_and_without_records(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    assert chain.second.run() is not None
    chain.send(an_event(5), an_event(61))
    chain.second.run()
    assert (chain.minutes(), before := chain.sent) == ({}, 1)
    # The first minute is over, and its sender has nothing more to send.
    chain.send(an_event(62))
    assert chain.sent == before
    chain.second.run()
    assert list(chain.minutes().values()) == [(1, 1)]
    assert chain.watermark("minutes") == chain.watermark("seconds") == micros(datetime(2026, 1, 1, 0, 1, tzinfo=UTC))


def test_a_sender_that_has_not_run_tells_nothing_and_one_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "one")
    value = json.dumps({"ts": "2026-01-01T00:00:00Z", "user": "a", "n": 1}).encode()
    chain.first.log.append("sums-sent", 0, [NewRecord(value=value, timestamp=datetime.now(UTC))])
    assert chain.second.run().position.watermark == BEGINNING
    other = Chain(tmp_path / "other", sender="secnods")
    with pytest.raises(ConfigError, match="neither the lake nor the project has such a pipeline"):
        other.second.run()
    said = type_command(tmp_path / "other", "plan", "minutes", "--dry-run")
    assert (said.code, "secnods" in said.err) == (5, True), said


def test_a_retry_has_the_watermark_of_its_plan(tmp_path: Path, monkeypatch: Any) -> None:
    chain = Chain(tmp_path)
    chain.send(an_event(5), an_event(65))
    monkeypatch.setenv("TIDEMILL_FAILPOINT", "before:committed=raise")
    with pytest.raises(Exception, match="committed"):
        chain.second.run()
    monkeypatch.delenv("TIDEMILL_FAILPOINT")
    told = chain.watermark("seconds")
    chain.send(an_event(200))
    commit = chain.second.run()
    assert (commit.attempt, commit.position.watermark) == (2, told)


def test_status_and_plan_say_what_the_sender_told(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    chain.send(an_event(5), an_event(65))
    chain.second.run()
    said = type_command(tmp_path, "status", "minutes", "--json")
    [found] = [p for p in json.loads(said.out)["partitions"] if p["partition"] == 0]
    assert found["told_watermark"] == "2026-01-01T00:01:03+00:00"
    assert "watermark of pipeline seconds" in type_command(tmp_path, "explain", "minutes", "--json").out
    renamed = Project.load(tmp_path)
    assert renamed.pipeline("minutes").delays == {"sums-sent": None}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('watermark_of="seconds", delay="1 s"', "a delay and with watermark_of"),
        ('watermark_of="seconds", watermark="ts"', "a watermark and with watermark_of"),
        ('watermark_of="Seconds!"', "a pipeline"),
        ("watermark_of=5", "a pipeline"),
    ],
)
def test_one_bound_is_said_and_of_a_pipeline_that_may_be(tmp_path: Path, said: str, why: str) -> None:
    chain = Chain(tmp_path)
    file = tmp_path / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace('watermark_of="seconds"', said))
    found = type_command(tmp_path, "explain", "minutes")
    assert found.code, chain
    assert why in found.err
