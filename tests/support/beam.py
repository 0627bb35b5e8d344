"""Apache Beam's trigger transcripts, told to the fold of ordered windows.

This is the one place that says where Beam's rules and Tidemill's differ:

- A window of Beam has an inclusive end: [0, 9] is [0, 10).
- A watermark of Beam means "all up to and with"; Tidemill's W is exclusive, so it is one more.
- Sessions of Beam do not merge when the gap is exactly as long as asked, Tidemill's do. So a gap of 10 whole units of
  Beam is one of 9 here, and sessions end one unit earlier than Beam says.
- Beam counts the firings of each merged session anew; Tidemill goes on counting.
- Beam evaluates triggers once for each bundle, Tidemill for each record. Where a story gives no values, only the window
  that fires is compared.
- Beam drops windows by the watermark of the newest record, where a transcript looks at state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from support.ordered import Result, Story, of_times
from tidemill.core.ordered import triggers
from tidemill.core.ordered.assigners import Sessions
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.records import Moment
from tidemill.core.time.panes import Window
from tidemill.core.time.timing import Timing
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.core.time.windows import Tumbling

TRIGGERS = {name: getattr(triggers, name) for name in ("AfterWatermark", "AfterCount")}
# What Beam would add to the timestamps of records that its test windows mark.
TRANSFORMED = 100


class BadTranscript(Exception):
    """The transcript says something else than what happens."""


class Everything:
    """One window for all times."""

    def windows_of(self, time: int) -> tuple[Window, ...]:
        return (Window(BEGINNING, END),)


def declared_of(spec: dict[str, Any]) -> EventWindows:
    """What a transcript declares, with one unit of Beam as a microsecond."""
    name, size = re.match(r"(\w+)(?:\((\d+)\))?", spec.get("window_fn", "GlobalWindows")).groups()  # type: ignore[union-attr]
    windows: Any = Everything()
    if name.endswith(("FixedWindows", "FixedWindowsWindowFn")):
        windows = Tumbling(f"{size} us").panes
    elif name == "Sessions":
        windows = Sessions(f"{int(size) - 1} us")
    trigger = spec.get("trigger_fn", "Default")
    return EventWindows(
        windows,
        triggers.DefaultTrigger() if trigger == "Default" else eval(trigger, dict(TRIGGERS)),
        allowed_lateness=f"{spec.get('allowed_lateness', 0)} us",
        accumulation=spec.get("accumulation_mode", "accumulating"),
        accept_loss=True,
    )


@dataclass
class Transcript:
    """One story; `bundles` says how each input is divided and ordered before it is told."""

    spec: dict[str, Any]
    bundles: Callable[[list[int]], Iterable[list[int]]] = lambda times: [times]
    watermarks: list[int] = field(default_factory=list)
    waiting: list[Result] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.story = Story(declared_of(self.spec))
        self.sessions = isinstance(self.story.declared.windows, Sessions)

    def check(self) -> None:
        """Tell the whole story.

        Raises:
            BadTranscript: something else happened than what it says.
        """
        for event in self.spec["transcript"]:
            (action, content), *_ = event.items()
            if action != "expect":
                self._nothing_waits()
            getattr(self, f"_{action}")(content)
        self._nothing_waits()

    def _nothing_waits(self) -> None:
        if self.waiting:
            raise BadTranscript(f"Unexpected output: {self.waiting}")

    def _input(self, times: list[int]) -> None:
        for bundle in self.bundles(times):
            self.watermarks += [self.story.before.watermark] * len(bundle)
            self.waiting += self.story.batch(of_times(*bundle))

    def _watermark(self, time: int) -> None:
        self.waiting += self.story.batch([], Moment(time + 1, time + 1))

    def _expect(self, expected: list[dict[str, Any]]) -> None:
        for each in expected:
            found = [result for result in self.waiting if self._fits(result, each)]
            if not found:
                raise BadTranscript(f"Unmatched output: {each}, found {self.waiting}")
            self.waiting.remove(found[0])

    def _state(self, expected: dict[str, list[list[int]]]) -> None:
        newest = max(record.time for record in self.story.records)
        self.story.batch([], Moment(newest, newest))
        kept = (self.story.state or {"open": []})["open"]
        found: dict[str, list[list[int]]] = {"present": [], "tombstone": []}
        for each in kept:
            found["tombstone" if "refuses" in each else "present"].append([each["start"], each["end"] - 1])
        gone = [each for each in expected["absent"] if each not in found["present"] + found["tombstone"]]
        if found | {"absent": gone} != expected:
            raise BadTranscript(f"Unmatched state: {found}")

    def _fits(self, result: Result, expected: dict[str, Any]) -> bool:
        return all(self._told(result)[name] == value for name, value in expected.items())

    def _told(self, result: Result) -> dict[str, Any]:
        """A result in the words of Beam."""
        assert result.window is not None
        same = [each for each in self.story.results[: self.story.results.index(result)] if each.window == result.window]
        speculative = result.timing is Timing.EARLY
        index = len(same)
        nonspeculative = -1 if speculative else sum(each.timing is not Timing.EARLY for each in same)
        if not self.sessions:
            assert (index, nonspeculative) == (result.index, result.nonspeculative)
        end = result.window.end - 1 + self.sessions
        return {
            "window": [result.window.start, end],
            "values": sorted(self.story.records[i].time for i in result.records),
            "timestamp": self._timestamp(result, end),
            "index": index,
            "nonspeculative_index": nonspeculative,
            "early": speculative,
            "late": result.timing is Timing.LATE,
            "final": result.is_last,
        }

    def _timestamp(self, result: Result, end: int) -> int:
        """By the combiner, of the records that were not behind the watermark when they came."""
        times = [self.story.records[i].time for i in result.records if self.story.records[i].time >= self.watermarks[i]]
        combiner = self.spec.get("timestamp_combiner", "OUTPUT_AT_EOW")
        if combiner == "OUTPUT_AT_EOW" or not times:
            return end
        if combiner == "OUTPUT_AT_LATEST":
            return max(times)
        return min(times) + (TRANSFORMED if combiner.endswith("TRANSFORMED") else 0)
