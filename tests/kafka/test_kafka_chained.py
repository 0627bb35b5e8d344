"""Windows of windows: a pipeline reads what another one sends, and has its watermark, on a real broker."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka.conftest import Cluster
from support.projects import EVENTS_CONTRACT, NO_SPARK, NOW, SUMS_CONTRACT, Mill, a_project, an_event
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.core.time.watermarks import END

pytestmark = pytest.mark.kafka

PIPELINES = """
from tidemill import Count, Pipeline, Sum, Tumbling

with Pipeline("seconds", every="1 minute") as pipeline:
    events = pipeline.read("IN", contract="events", event_time="ts", delay="2 s")
    tens = events.key_by("user").window(Tumbling("10 seconds")).aggregate(n=Count(), amount=Sum("amount"))
    tens.with_columns(ts="timestamp_micros(unix_micros(window_end) - 1)").publish(
        "sums", contract="sums", topic="IN-sums"
    )

with Pipeline("minutes", every="1 minute") as pipeline:
    sums = pipeline.read("IN-sums", contract="sent", event_time="ts", watermark_of="seconds")
    minutes = sums.key_by("user").window(Tumbling("1 minute")).aggregate(n=Sum("n"), amount=Sum("amount"))
    minutes.publish("by_minute", contract="by_minute")
"""
SENT = EVENTS_CONTRACT.replace("events", "sent").replace("EXTRA", "keep") + (
    "      - {name: n, logicalType: integer, required: true}\n"
)


@pytest.mark.parametrize("place", ["after:sent:{}-sums", pytest.param("before:committed", marks=pytest.mark.long)])
def test_windows_of_windows_are_complete_whatever_fails_between_sending_and_commit(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    topic = cluster.topic()
    cluster.topic(2, name=f"{topic}-sums")
    contracts = {
        "events": EVENTS_CONTRACT.replace("EXTRA", "keep"),
        "sums": SUMS_CONTRACT + "      - {name: ts, logicalType: timestamp, required: true}\n",
        "sent": SENT,
        "by_minute": SUMS_CONTRACT.replace("sums", "by_minute"),
    }
    project = a_project(tmp_path, PIPELINES.replace("IN", topic), contracts, log={"kafka": cluster.broker.servers})
    first, second = (Mill(project, NO_SPARK, name) for name in ("seconds", "minutes"))
    expected: Counter[tuple[datetime, str]] = Counter()

    def seen() -> dict[tuple[datetime, str], int]:
        second.run()
        rows = second.published("by_minute")
        found: dict[tuple[datetime, str], Any] = {(row["window_start"], row["user"]): row["n"] for row in rows}
        assert all(n == expected[key] for key, n in found.items())
        return found

    for batch in range(6):
        events = [(30 * batch + second, "ab"[second % 2]) for second in (0, 3, 7, 12, 25)]
        cluster.feed(topic, [an_event(second, user) for second, user in events])
        for at, user in events:
            expected[NOW + timedelta(seconds=at - at % 60), user] += 1
        if batch == 3:
            # The messages are there, but nobody has said so yet.
            monkeypatch.setenv(VARIABLE, f"{place.format(topic)}=raise")
            with pytest.raises(Injected):
                first.run()
            monkeypatch.delenv(VARIABLE)
            seen()
        first.run()
        seen()
    assert len(seen()) >= 2
    first.catch_up()
    second.catch_up(drain=False)
    assert project.ledger("minutes").view().position.watermark == END
    assert seen() == expected
    assert second.own("late") == []
