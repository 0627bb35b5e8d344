"""Rules of the triggers that are made of others: their state holds the states of their parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tidemill.core.ordered.trigger_rules import Rule, TriggerState


class Repeat:
    """Repeatedly: its state is that of the trigger, which begins anew when it is finished."""

    __slots__ = ("due", "element", "merged", "new", "ready", "rule", "tick")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.new, self.element, self.tick, self.due = rule.new, rule.element, rule.tick, rule.due
        self.ready, self.merged = rule.ready, rule.merged

    def fired(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        if self.rule.fired(state, passed):
            state[:] = self.rule.new()
        return False


class Watermark:
    """AfterWatermark: whether the on-time firing is past, then the states of `early` and `late`, both repeated."""

    __slots__ = ("early", "late")

    def __init__(self, early: Rule, late: Rule | None) -> None:
        self.early, self.late = Repeat(early), None if late is None else Repeat(late)

    def new(self) -> TriggerState:  # noqa: D102
        return [False, self.early.new(), [] if self.late is None else self.late.new()]

    def element(self, state: TriggerState, clock: int) -> None:  # noqa: D102
        if not state[0]:
            self.early.element(state[1], clock)
        elif self.late is not None:
            self.late.element(state[2], clock)

    def tick(self, state: TriggerState, clock: int) -> bool:  # noqa: D102
        if not state[0]:
            return self.early.tick(state[1], clock)
        return self.late is not None and self.late.tick(state[2], clock)

    def ready(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        if state[0]:
            return self.late is not None and self.late.ready(state[2], passed)
        return passed or self.early.ready(state[1], passed)

    def fired(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        if state[0]:
            return self.late is None or self.late.fired(state[2], passed)
        if passed:
            state[0], state[1] = True, self.early.new()
            return self.late is None
        return self.early.fired(state[1], passed)

    def merged(self, states: Sequence[TriggerState], passed: bool) -> TriggerState:  # noqa: D102
        if passed and all(state[0] for state in states) and self.late is not None:
            return [True, self.early.new(), self.late.merged([state[2] for state in states], passed)]
        _, early, late = self.new()
        if waiting := [state[1] for state in states if not state[0]]:
            early = self.early.merged(waiting, passed)
        return [False, early, late]

    def due(self, state: TriggerState) -> int | None:  # noqa: D102
        if not state[0]:
            return self.early.due(state[1])
        return None if self.late is None else self.late.due(state[2])


class Parallel:
    """AfterAny, AfterAll and OrFinally: the states of all parts, and `any` or `all` of them decides."""

    __slots__ = ("decide", "rules")

    def __init__(self, rules: tuple[Rule, ...], decide: Callable[[Iterable[bool]], bool]) -> None:
        self.rules, self.decide = rules, decide

    def new(self) -> TriggerState:  # noqa: D102
        return [rule.new() for rule in self.rules]

    def element(self, state: TriggerState, clock: int) -> None:  # noqa: D102
        for rule, part in zip(self.rules, state, strict=True):
            rule.element(part, clock)

    def tick(self, state: TriggerState, clock: int) -> bool:  # noqa: D102
        elapsed = [rule.tick(part, clock) for rule, part in zip(self.rules, state, strict=True)]
        return any(elapsed)

    def ready(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        return self.decide(rule.ready(part, passed) for rule, part in zip(self.rules, state, strict=True))

    def fired(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        ready = [(rule, part) for rule, part in zip(self.rules, state, strict=True) if rule.ready(part, passed)]
        return self.decide([rule.fired(part, passed) for rule, part in ready])

    def merged(self, states: Sequence[TriggerState], passed: bool) -> TriggerState:  # noqa: D102
        return [rule.merged([state[i] for state in states], passed) for i, rule in enumerate(self.rules)]

    def due(self, state: TriggerState) -> int | None:  # noqa: D102
        dues = [rule.due(part) for rule, part in zip(self.rules, state, strict=True)]
        return min((due for due in dues if due is not None), default=None)


class Each:
    """AfterEach: the number of the trigger that is on, and its state."""

    __slots__ = ("rules",)

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules

    def new(self) -> TriggerState:  # noqa: D102
        return [0, self.rules[0].new()]

    def element(self, state: TriggerState, clock: int) -> None:  # noqa: D102
        self.rules[state[0]].element(state[1], clock)

    def tick(self, state: TriggerState, clock: int) -> bool:  # noqa: D102
        return self.rules[state[0]].tick(state[1], clock)

    def ready(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        return self.rules[state[0]].ready(state[1], passed)

    def fired(self, state: TriggerState, passed: bool) -> bool:  # noqa: D102
        if not self.rules[state[0]].fired(state[1], passed):
            return False
        if state[0] + 1 == len(self.rules):
            return True
        state[:] = [state[0] + 1, self.rules[state[0] + 1].new()]
        return False

    def merged(self, states: Sequence[TriggerState], passed: bool) -> TriggerState:  # noqa: D102
        at = max(state[0] for state in states)
        return [at, self.rules[at].merged([state[1] for state in states if state[0] == at], passed)]

    def due(self, state: TriggerState) -> int | None:  # noqa: D102
        return self.rules[state[0]].due(state[1])
