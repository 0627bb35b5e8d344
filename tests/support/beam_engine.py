"""The stories of `beam`, told to a pipeline: one unit of Beam is a second.

Beyond what `beam` says: the timestamp of an output is no column of a table, and what is kept is no concern of readers.
"""

from __future__ import annotations

import re
from datetime import UTC
from pathlib import Path
from typing import Any

from support.beam import Transcript
from support.projects import EVENTS_CONTRACT, NOW, Mill, a_project, an_event, rows_of
from tidemill.run.batch import NothingToDo

BEHIND = 3600
"""How many seconds the watermark stays behind the newest record, so that records alone never move it."""

CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: firings
version: 1.0.0
status: active
schema:
  - name: firings
    logicalType: object
    properties:
      - {name: user, logicalType: string, required: true}
      - {name: times, logicalType: array, items: {logicalType: integer}}
      - {name: timing, logicalType: string}
      - {name: nth, logicalType: integer}
      - {name: last, logicalType: boolean}
"""

BOUNDS = """\
      - {name: window_start, logicalType: timestamp}
      - {name: window_end, logicalType: timestamp}
"""

PIPELINE = """
from tidemill import *

with Pipeline("firings", every="1 minute", idle_timeout=None) as pipeline:
    (
        pipeline.read("events", contract="events", event_time="ts", delay="1 hour")
        .filter("user != 'nobody'")
        .key_by("user")
        .window(WINDOW, allowed_lateness="LATENESS s")
        .aggregate(times=Collect("amount"))
        .publish("firings", contract="firings", trigger=TRIGGER, accumulation="MODE", timing="timing", index="nth",
                 last="last", accept_loss=True)
    )
"""


def pipeline_of(spec: dict[str, Any], folder: Path, session: Any, **settings: Any) -> Mill:
    """The pipeline that a transcript declares, and its empty topic."""
    name, size = re.match(r"(\w+)(?:\((\d+)\))?", spec.get("window_fn", "GlobalWindows")).groups()  # type: ignore[union-attr]
    window = "Global()"
    if name.endswith(("FixedWindows", "FixedWindowsWindowFn")):
        window = f'Tumbling("{size} s")'
    elif name == "Sessions":
        window = f'Session("{int(size) - 1} s")'
    trigger = spec.get("trigger_fn", "Default")
    values = {
        "WINDOW": window,
        "LATENESS": str(spec.get("allowed_lateness", 0)),
        "TRIGGER": "DefaultTrigger()" if trigger == "Default" else trigger,
        "MODE": spec.get("accumulation_mode", "accumulating"),
    }
    text = PIPELINE
    for key, value in values.items():
        text = text.replace(key, value)
    contract = CONTRACT if window == "Global()" else CONTRACT + BOUNDS
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "firings": contract}
    mill = Mill(a_project(folder, text, contracts, **settings), session, "firings")
    mill.log.create_topic("events", partitions=1)
    return mill


class PipelineTranscript(Transcript):
    """One story, told to a pipeline."""

    mill: Mill

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fired: list[dict[str, Any]] = []

    def _input(self, times: list[int]) -> None:
        for bundle in self.bundles(times):
            self._batch([an_event(time, "a", time) for time in bundle])

    def _watermark(self, time: int) -> None:
        self._batch([an_event(time + 1 + BEHIND, "nobody", 0)])

    def _state(self, expected: dict[str, list[list[int]]]) -> None:
        """What is kept is no concern of readers."""

    def _batch(self, values: list[bytes]) -> None:
        self.mill.feed(values)
        commit = self.mill.run()
        if not isinstance(commit, NothingToDo):
            rows = rows_of(self.mill.project.published_uri("firings"))
            new = [row for row in rows if row["batch_id"] == commit.batch_id]
            new.sort(key=lambda row: (row["nth"], row.get("window_start") or NOW))
            self.waiting += new
            self.fired += new

    def _told(self, row: Any) -> dict[str, Any]:
        key = row.get("window_start"), row.get("window_end")
        before = self.fired[: next(i for i, each in enumerate(self.fired) if each is row)]
        same = [each for each in before if (each.get("window_start"), each.get("window_end")) == key]
        speculative = row["timing"] == "EARLY"
        if not self.sessions:
            assert row["nth"] == len(same)
        told = {
            "values": sorted(row["times"] or []),
            "index": len(same),
            "nonspeculative_index": -1 if speculative else sum(each["timing"] != "EARLY" for each in same),
            "early": speculative,
            "late": row["timing"] == "LATE",
            "final": row["last"],
        }
        if key[0] is not None:
            start, end = (int((each.astimezone(UTC) - NOW).total_seconds()) for each in key)
            told["window"] = [start, end - 1 + self.sessions]
        return told

    def _fits(self, row: Any, expected: dict[str, Any]) -> bool:
        told = self._told(row)
        return all(told.get(name) == value for name, value in expected.items() if name != "timestamp")


def told_to(spec: dict[str, Any], mill: Mill, **how: Any) -> PipelineTranscript:
    """The story, to be told to this pipeline."""
    found = PipelineTranscript(spec, **how)
    found.mill = mill
    return found
