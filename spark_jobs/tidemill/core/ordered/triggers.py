"""Triggers: when a window of event time fires. The names and rules are those of Apache Beam.

They are evaluated record by record in the order of a key, and once more when watermark and clock have moved. What
cannot be is a DeclarationError.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from tidemill.core.errors import DeclarationError
from tidemill.core.ordered.policies import check_count
from tidemill.core.ordered.trigger_parts import check_triggers
from tidemill.core.time.times import duration, micros, show_duration


@dataclass(frozen=True, slots=True)
class DefaultTrigger:
    """When the watermark passes the end of the window, and again for each late record."""

    def __str__(self) -> str:
        return "when the watermark passes the end, then for each late record"


@dataclass(frozen=True, slots=True)
class AfterWatermark:
    """Once when the watermark passes the end of the window, and repeatedly before and after that as asked.

    Without `late` it is finished then.

    Args:
        early: a trigger that is repeated until the watermark passes the end.
        late: a trigger that is repeated after that, if windows have an allowed lateness; without one it never fires.
    """

    early: Trigger | None = None
    late: Trigger | None = None

    def __post_init__(self) -> None:
        _check(*(each for each in (self.early, self.late) if each is not None))

    def __str__(self) -> str:
        parts = [f"{name}: {part}" for name, part in (("early", self.early), ("late", self.late)) if part is not None]
        return "when the watermark passes the end" + (f" ({'; '.join(parts)})" if parts else "")


@dataclass(frozen=True, slots=True)
class AfterCount:
    """Once when the window has so many records, after the record that makes it so many.

    Args:
        count: how many, at least 1.
    """

    count: int

    def __post_init__(self) -> None:
        check_count(self.count, "AfterCount")

    def __str__(self) -> str:
        return f"after {self.count} record{'' if self.count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class AfterProcessingTime:
    """Once when the clock of a batch has passed so much time since the first record.

    Args:
        delay: how much time; 0 is the end of the batch.
    """

    delay: str | timedelta = timedelta(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", duration(self.delay, "the delay of AfterProcessingTime"))

    @property
    def micros(self) -> int:
        """The delay in microseconds."""
        return micros(duration(self.delay))

    def __str__(self) -> str:
        return (
            f"{show_duration(duration(self.delay))} after the first record"
            if self.micros
            else "at the end of the batch"
        )


@dataclass(frozen=True, slots=True, init=False, repr=False)
class _Several:
    """Triggers made of several others, at least one."""

    triggers: tuple[Trigger, ...]

    def __init__(self, *triggers: Trigger) -> None:
        if not triggers:
            name = type(self).__name__
            raise DeclarationError(f"{name} needs at least one trigger", fix=f"write for example {name}(AfterCount(9))")
        _check(*triggers)
        object.__setattr__(self, "triggers", triggers)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.triggers))})"


class AfterEach(_Several):
    """One trigger after the other: the next one begins when the one before is finished.

    Args:
        triggers: at least one.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return ", then ".join(map(str, self.triggers))


class AfterAny(_Several):
    """Whenever one of the triggers fires; finished as soon as one of them is.

    Args:
        triggers: at least one.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return f"any of ({' | '.join(map(str, self.triggers))})"


class AfterAll(_Several):
    """When all of the triggers are ready to fire; finished when all of them are.

    Args:
        triggers: at least one.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return f"all of ({' & '.join(map(str, self.triggers))})"


@dataclass(frozen=True, slots=True)
class Repeatedly:
    """A trigger that begins anew each time it is finished; never finished itself.

    Args:
        trigger: the one to repeat.
    """

    trigger: Trigger

    def __post_init__(self) -> None:
        _check(self.trigger)

    def __str__(self) -> str:
        return f"repeatedly {self.trigger}"


@dataclass(frozen=True, slots=True)
class OrFinally:
    """Whenever `trigger` fires, until `until` fires, too; then, or when `trigger` is finished, it is finished.

    Args:
        trigger: the one that fires.
        until: the one that ends it, with a last firing.
    """

    trigger: Trigger
    until: Trigger

    def __post_init__(self) -> None:
        _check(self.trigger, self.until)

    def __str__(self) -> str:
        return f"{self.trigger}, or finally {self.until}"


@dataclass(frozen=True, slots=True)
class Never:
    """Not before the window is closed, which fires what is there."""

    def __str__(self) -> str:
        return "when the window is closed"


_Simple: TypeAlias = DefaultTrigger | AfterWatermark | AfterCount | AfterProcessingTime | Never
Trigger: TypeAlias = _Simple | AfterEach | AfterAny | AfterAll | Repeatedly | OrFinally


def _check(*triggers: object) -> None:
    check_triggers(triggers, Trigger)
