"""Rules of the triggers that are made of no others."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.core.ordered.trigger_rules import TriggerState


class Nothing:
    """Never: its state is empty."""

    def new(self) -> TriggerState:  # noqa: D102
        return []

    def element(self, state: TriggerState, clock: int) -> None:  # noqa: D102
        pass

    def tick(self, state: TriggerState, clock: int) -> bool:  # noqa: D102
        return False

    def ready(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        return False

    def fired(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        return False

    def merged(self, states: Sequence[TriggerState], passed: bool) -> TriggerState:  # noqa: D102
        return []

    def due(self, state: TriggerState) -> int | None:  # noqa: D102
        return None


class Count(Nothing):
    """AfterCount: its state is how many records came."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count

    def new(self) -> TriggerState:  # noqa: D102
        return [0]

    def element(self, state: TriggerState, clock: int) -> None:  # noqa: D102
        state[0] += 1

    def ready(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        return bool(state[0] >= self.count)

    def fired(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        return True

    def merged(self, states: Sequence[TriggerState], passed: bool) -> TriggerState:  # noqa: D102
        return [sum(state[0] for state in states)]


class Delay(Nothing):
    """AfterProcessingTime: its state is when it is due, None before a record, and whether the clock has reached that.

    A record never makes it ready, only the clock, which moves when the records of a batch are there.
    """

    __slots__ = ("delay",)

    def __init__(self, delay: int) -> None:
        self.delay = delay

    def new(self) -> TriggerState:  # noqa: D102
        return [None, False]

    def element(self, state: TriggerState, clock: int) -> None:  # noqa: D102
        if state[0] is None:
            state[0] = clock + self.delay

    def tick(self, state: TriggerState, clock: int) -> bool:  # noqa: D102
        if state[1] or state[0] is None or state[0] > clock:
            return False
        state[1] = True
        return True

    def ready(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        return bool(state[1])

    def fired(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        return True

    def merged(self, states: Sequence[TriggerState], passed: bool) -> TriggerState:  # noqa: D102
        first = min((state[0] for state in states if state[0] is not None), default=None)
        return [first, any(state[1] for state in states)]

    def due(self, state: TriggerState) -> int | None:  # noqa: D102
        return None if state[1] else state[0]
