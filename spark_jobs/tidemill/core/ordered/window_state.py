"""What windows with a trigger keep of one key."""

from __future__ import annotations

from typing import Any

from tidemill.core.ordered.evictors import Held
from tidemill.core.ordered.firing import Pieces, Reason, State
from tidemill.core.ordered.kept import Runs, check_state, ids_of, kept, pieces_in, runs_of
from tidemill.core.ordered.trigger_rules import TriggerState
from tidemill.core.time.panes import Window

_MACHINE = "windows"

_BLOCK = 2**12
"""So many ids of pieces are set aside for a window at once. So those of a window follow one another, also where several
windows of a key take records in turn: `tidemill.engine.publish.kept_pieces` merges what follows one another."""


class OpenWindow:
    """One window of a key.

    `fresh` are the pieces since the last firing, of which the last one takes records; `earlier` the runs of pieces that
    an accumulating window keeps of its firings. `held` are the records of both, where an evictor has to look at them.
    `next` is the id of its next piece; a multiple of `_BLOCK` if no more ids are set aside. `published` has the
    windows under which this one fired, with what a retraction must name. `refuses` says why the window takes no
    records.
    """

    __slots__ = (
        "earlier",
        "end",
        "fresh",
        "held",
        "index",
        "next",
        "nonspeculative",
        "published",
        "refuses",
        "start",
        "trigger",
    )

    def __init__(self, start: int, end: int, trigger: TriggerState, refuses: Reason | None = None) -> None:
        self.start, self.end, self.trigger, self.refuses = start, end, trigger, refuses
        self.fresh = list[int]()
        self.earlier: Runs = []
        self.held = dict[int, Held]()
        self.next = self.index = self.nonspeculative = 0
        self.published = dict[Window, Pieces]()

    def written(self) -> dict[str, Any]:
        """This window as JSON has it; what is empty is left out."""
        parts = {
            "trigger": self.trigger,
            "fresh": runs_of(self.fresh),
            "earlier": self.earlier,
            "held": [list(each) for each in self.held.values()],
            "next": self.next,
            "index": self.index,
            "nonspeculative": self.nonspeculative,
            "published": [[window.start, window.end, runs_of(ids)] for window, ids in self.published.items()],
            "refuses": self.refuses and self.refuses.value,
        }
        return {"start": self.start, "end": self.end, **{name: part for name, part in parts.items() if part}}

    @classmethod
    def read(cls, written: dict[str, Any]) -> OpenWindow:
        """The window that was written; what was written is not changed afterwards."""
        refuses = Reason(written["refuses"]) if "refuses" in written else None
        found = cls(written["start"], written["end"], _copied(written.get("trigger", [])), refuses)
        found.fresh, found.earlier = ids_of(written.get("fresh", ())), written.get("earlier", [])
        found.held = {each[0]: Held(*each) for each in written.get("held", ())}
        found.index, found.nonspeculative = written.get("index", 0), written.get("nonspeculative", 0)
        found.next = written.get("next", 0)
        found.published = {Window(a, b): pieces_in(runs) for a, b, runs in written.get("published", ())}
        return found


class KeyWindows:
    """The windows of one key that are not closed, and the first id of a piece that is not set aside."""

    __slots__ = ("next", "open")

    def __init__(self, state: State | None, first_piece: int) -> None:
        self.next, self.open = first_piece, list[OpenWindow]()
        if state is not None:
            check_state(state, _MACHINE)
            self.next = state["next"]
            self.open = [OpenWindow.read(each) for each in state["open"]]

    def next_piece(self) -> int:
        """The id of a new piece, in the order in which pieces begin: evictors look at records in their order."""
        self.next += 1
        return self.next - 1

    def piece_of(self, opened: OpenWindow) -> int:
        """The id of a new piece of this window, which follows the one before if there are ids set aside."""
        if opened.next % _BLOCK == 0:
            opened.next = self.next = -(-self.next // _BLOCK) * _BLOCK
            self.next += _BLOCK
        opened.next += 1
        return opened.next - 1

    def kept(self) -> State | None:
        """The state, if a window is open."""
        return kept(_MACHINE, next=self.next, open=[each.written() for each in self.open]) if self.open else None


def _copied(trigger: TriggerState) -> TriggerState:
    return [_copied(each) if isinstance(each, list) else each for each in trigger]
