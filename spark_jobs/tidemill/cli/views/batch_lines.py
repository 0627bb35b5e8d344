"""Prints batches as they commit: one line each, and on a terminal also what is going on."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from tidemill.cli.output import console, styled
from tidemill.core.counts import many
from tidemill.core.protocol.summary import broken_rules, commit_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from tidemill.core.protocol.events import Committed

# Together these columns fit a terminal of 80 characters.
_COLUMNS: Mapping[str, int] = {
    "batch": 5,
    "read": 9,
    "aggregated": 11,
    "filtered": 9,
    "rejected": 9,
    "late": 6,
    "published": 10,
    "watermark": 15,
    "secs": 5,
}


class Progress(Protocol):
    """Receives the progress of a run."""

    def phase(self, what: str) -> None:
        """A phase begins that takes a while."""
        ...

    def starting_spark(self, pipeline: str) -> None:
        """Spark starts, which takes so long that people may think that nothing happens."""
        ...

    def committed(self, commit: Committed) -> None:
        """A batch has committed."""
        ...

    def ended(self, outcome: str, batches: int) -> None:
        """No more batches will be executed."""
        ...


class BatchLines:
    """Lines for people: one for each batch and, on a terminal, a status line below them."""

    def __init__(self, out: Console, status: Status | None) -> None:
        self._out, self._status, self._headed = out, status, False

    def phase(self, what: str) -> None:
        """Show the phase in the status line; nothing if there is no terminal."""
        if self._status is not None:
            self._status.update(what)

    def starting_spark(self, pipeline: str) -> None:
        """Show it in the status line; without a terminal, print a line to standard error."""
        if self._status is None:
            print(f"{pipeline}: starting Spark ...", file=sys.stderr, flush=True)
        self.phase(f"{pipeline}: starting Spark")

    def committed(self, commit: Committed) -> None:
        """Print the line of a batch, and a line for each rule that was broken."""
        self.batch(commit_json(commit))
        for text in broken_rules(commit):
            self._out.print(f"       {text}", soft_wrap=True)

    def ended(self, outcome: str, batches: int) -> None:
        """Print how the run ended and after how many batches."""
        self.say(f"{outcome} after {many(batches, 'batch')}" if batches else outcome)

    def batch(self, facts: Mapping[str, Any]) -> None:
        """Print a batch, given the fields of `commit_json`."""
        self._head()
        texts = {name: f"{facts[name]:,}" for name in _COLUMNS if isinstance(facts.get(name), int)}
        texts["batch"] = str(facts["batch_id"])
        texts["published"] = f"{sum(facts['published'].values()):,}"
        texts["watermark"] = _short(facts["watermark"])
        texts["secs"] = f"{facts['seconds']:.1f}"
        attempt = f"  attempt {facts['attempt']}" if facts["attempt"] > 1 else ""
        # A value wider than its column moves the following ones, but never touches them.
        line = "".join(texts[name].rjust(max(width, len(texts[name]) + 1)) for name, width in _COLUMNS.items())
        self._out.print(styled(line, (attempt, "dim")), soft_wrap=True)
        if facts["kind"] != "live" and facts["late"]:
            self._out.print(_of_forgotten(facts), soft_wrap=True)

    def incident(self, batch: object, what: str) -> None:
        """Print a line about a batch that did not commit."""
        self._head()
        self._out.print(f"{batch!s:>{_COLUMNS['batch']}}  {what}", style="bold red", soft_wrap=True)

    def say(self, what: str) -> None:
        """Print a line of text."""
        self._out.print(what)

    def _head(self) -> None:
        if not self._headed:
            self._headed = True
            self._out.print("".join(name.rjust(width) for name, width in _COLUMNS.items()), style="bold")


class JsonLines:
    """One JSON object per line, for programs."""

    def phase(self, what: str) -> None:
        """Print nothing: phases do not matter to programs."""

    def starting_spark(self, pipeline: str) -> None:
        """Print nothing, as for phases."""

    def committed(self, commit: Committed) -> None:
        """Print the commit as an object."""
        self.event(commit_json(commit))

    def ended(self, outcome: str, batches: int) -> None:
        """Print an object that says how the run ended."""
        self.event({"event": "ended", "outcome": outcome, "batches": batches})

    def event(self, facts: Mapping[str, object]) -> None:
        """Print an event and flush it, so that a reader at the other end of a pipe sees it at once."""
        print(json.dumps(facts, ensure_ascii=False), flush=True)


@contextmanager
def batch_lines() -> Iterator[BatchLines]:
    """Lines on standard output, with a status line on a terminal."""
    out = console()
    if not out.is_terminal:
        yield BatchLines(out, None)
        return
    with out.status("") as status:
        yield BatchLines(out, status)


def _short(watermark: str | None) -> str:
    """Month, day and time of a watermark in JSON form."""
    if watermark is None:
        return "none yet"
    return "end of input" if watermark == "end" else watermark[5:19].replace("T", " ")


def _of_forgotten(facts: Mapping[str, Any]) -> str:
    """A note about records that were read again and are late again."""
    late, until = facts["late"], _short(facts["forgotten_until"])
    if facts["forgotten_until"] is None:
        return (
            f"       {many(late, 'record')} late again, because the windows of their table of firings are closed for "
            "good, or a delta cannot compare them: they stay in the late table. To count those of closed windows, "
            "declare a longer allowed_lateness, accept it with `tidemill run --from-now`, and backfill from the batch "
            "that brought them; for buffers and RecordWindows, declare a longer delay, and `tidemill rebuild`"
        )
    return (
        f"       {many(late, 'record')} of windows that end by {until}, whose state was removed: what was put "
        "aside is in the late table, and the windows stay as they are; `tidemill backfill --windows` computes them"
    )
