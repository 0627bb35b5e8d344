"""Windows of event time with a trigger, as they are declared."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from tidemill.core.errors import DeclarationError
from tidemill.core.given import check_flag
from tidemill.core.ordered.accumulation import Accumulation
from tidemill.core.ordered.assigners import Assigner, Sessions
from tidemill.core.ordered.evictors import Evictor
from tidemill.core.ordered.trigger_laws import may_finish, may_fire_again
from tidemill.core.ordered.trigger_parts import no_trigger
from tidemill.core.ordered.triggers import DefaultTrigger, Trigger
from tidemill.core.time.times import duration, micros
from tidemill.core.time.watermarks import END

_DEFAULT = DefaultTrigger()


@dataclass(frozen=True, slots=True)
class EventWindows:
    """Windows of event time with a trigger: where, when and how.

    Args:
        windows: the arithmetic of aligned windows, or sessions.
        trigger: when a window fires.
        allowed_lateness: how long after its end a window takes records, zero or longer. Then it is closed, and fires a
            last time if records came since its last firing.
        accumulation: "discarding", "accumulating", "accumulating_and_retracting" or "accumulating_and_replacing";
            needed if a window may fire more than once.
        evictor: which records a firing leaves out.
        empty_on_time: whether the on-time firing takes place even if no record came since the firing before. All other
            firings need a record.
        accept_loss: allow a trigger that can finish while its window still takes records, which are then dropped.

    Raises:
        DeclarationError: that is no trigger, it can lose records, or it is not said how firings relate.
    """

    windows: Assigner | Sessions
    trigger: Trigger = _DEFAULT
    allowed_lateness: str | timedelta = timedelta(0)
    accumulation: str | None = None
    evictor: Evictor | None = None
    empty_on_time: bool = field(default=True, kw_only=True)
    accept_loss: bool = field(default=False, kw_only=True)
    lateness: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed_lateness", duration(self.allowed_lateness, "allowed_lateness"))
        if not isinstance(self.trigger, Trigger):
            raise no_trigger(self.trigger, Trigger)
        object.__setattr__(self, "lateness", micros(duration(self.allowed_lateness)))
        takes_late = self.lateness > 0
        check_flag(self.empty_on_time, "empty_on_time")
        check_flag(self.accept_loss, "accept_loss")
        if not self.accept_loss and may_finish(self.trigger, takes_late=takes_late):
            raise DeclarationError(
                f'the trigger "{self.trigger}" can finish while its window still takes records: those are lost',
                fix="write Repeatedly(...), give AfterWatermark a late trigger, or say accept_loss=True",
            )
        self._check_accumulation(may_fire_again(self.trigger, takes_late=takes_late))

    def _check_accumulation(self, needed: bool) -> None:
        known = ", ".join(f'"{each.value}"' for each in Accumulation)
        if self.accumulation is None and needed:
            raise DeclarationError(
                f'with the trigger "{self.trigger}" a window can fire more than once, and it is not said how its '
                "firings relate",
                fix=f"say accumulation: one of {known}",
            )
        given = Accumulation.ACCUMULATING if self.accumulation is None else self.accumulation
        try:
            object.__setattr__(self, "accumulation", Accumulation(given))
        except ValueError:
            raise DeclarationError(f"accumulation is one of {known}, found {self.accumulation!r}") from None
        if self.evictor is not None and self.evictor.after and self.accumulation == Accumulation.DISCARDING:
            raise DeclarationError(
                "an evictor has nothing to evict after the firing, because discarding windows are empty then",
                fix='leave out after=True, or say accumulation="accumulating"',
            )

    def is_closed(self, end: int, watermark: int) -> bool:
        """Whether a window takes no more records: the one comparison for late records and for what is kept."""
        return end + self.lateness <= watermark or watermark >= END
