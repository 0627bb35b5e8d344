"""Since when a key has had open windows."""

from __future__ import annotations

from tidemill.core.ordered.firing import State
from tidemill.core.time.watermarks import BEGINNING


def opened_since(state: State) -> int | None:
    """The start of the oldest window of a key that may still change, in microseconds.

    None if there is none, and of windows that have no start: those of counts, deltas and markers, and `Global()`. Of
    windows that records define, it is the time of the oldest record that is in one of them; of buffers in order of
    event time, that of the oldest record that waits.
    """
    starts: list[int]
    match state["machine"]:
        case "windows":
            starts = [window["start"] for window in state["open"] if "refuses" not in window]
        case "tumbling time":
            starts = [start for start, _ in state["pieces"]] + [at for at in (state["since"],) if at is not None]
        case "record windows":
            starts = state["times"][:1]
        case "sorted":
            starts = [time for time, *_ in state["waiting"]]
        case _:
            return None
    return min((start for start in starts if start > BEGINNING), default=None)
