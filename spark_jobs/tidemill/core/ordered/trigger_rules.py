"""Triggers as they run: for each window a state, which is made of what JSON has, and rules that change it.

When sessions merge, the states of their triggers merge as in Apache Beam: counts are added, the earliest end of a delay
stays, `AfterEach` is where the furthest session was. `AfterWatermark` is past its on-time firing only if it was in all
of them and the merged session has ended; otherwise that firing is still to come (Beam for Java; Beam for Python never
goes back). In one thing Tidemill differs: a merged session is finished only if all of its sessions were. Beam finishes
it as soon as one was, and loses the records of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

TriggerState: TypeAlias = list[Any]


class Rule(Protocol):
    """How one kind of trigger runs. `passed` says that the watermark has reached the end of the window."""

    def new(self) -> TriggerState:
        """The state before any record."""
        ...

    def element(self, state: TriggerState, clock: int) -> None:
        """A record joins the window, in a batch with this clock."""
        ...

    def tick(self, state: TriggerState, clock: int) -> bool:
        """The clock has moved; gives whether a delay is over because of that."""
        ...

    def ready(self, state: TriggerState, passed: bool) -> bool:
        """Whether the window fires now."""
        ...

    def fired(self, state: TriggerState, passed: bool) -> bool:
        """The window fires; gives whether the trigger is finished."""
        ...

    def merged(self, states: Sequence[TriggerState], passed: bool) -> TriggerState:
        """The state of a session made of several, or of one that was extended."""
        ...

    def due(self, state: TriggerState) -> int | None:
        """The clock at which `tick` changes something."""
        ...
