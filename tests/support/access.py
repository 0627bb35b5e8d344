"""An access log by the hour: a pipeline, and what a plain count of its lines gives."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support.projects import ROOT, Mill, a_project

HOURLY = """
from tidemill import Count, Pipeline, Tumbling

with Pipeline("hourly", every="1 minute") as pipeline:
    hits = pipeline.read("web.access", contract="web_access", event_time="ts", delay="60 seconds")
    hits.window(Tumbling("1 hour")).aggregate(requests=Count()).publish("hourly", contract="requests_by_hour")
"""


def an_hourly_mill(folder: Path, session: Any, **settings: Any) -> Mill:
    """A pipeline that counts requests by the hour, and its empty topic `web.access`."""
    contracts = {n: (ROOT / f"data_contracts/{n}.odcs.yaml").read_text() for n in ("web_access", "requests_by_hour")}
    mill = Mill(a_project(folder, HOURLY, contracts, **settings), session, "hourly")
    mill.log.create_topic("web.access", partitions=1)
    return mill


def time_of(line: bytes) -> datetime:
    """When a request was made."""
    text = line.partition(b"[")[2].partition(b"]")[0].decode()
    return datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z").astimezone(UTC)


def hours_of(lines: list[bytes]) -> list[dict[str, Any]]:
    """What a plain count of an access log's lines by their hour in UTC gives, as the published table has it."""
    hours = Counter(time_of(line).replace(minute=0, second=0) for line in lines)
    return [
        {"window_start": hour, "window_end": hour + timedelta(hours=1), "requests": count}
        for hour, count in sorted(hours.items())
    ]
