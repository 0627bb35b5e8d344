"""What watermark and clock do to the windows of a table of firings."""

from __future__ import annotations

from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.foldable import Ordered, policies_of, sorts
from tidemill.core.ordered.policies import TimePolicy
from tidemill.core.ordered.record_windows import RecordWindows
from tidemill.core.ordered.self_firing import SelfFiring
from tidemill.core.ordered.trigger_laws import uses_clock
from tidemill.core.ordered.triggers import AfterWatermark, DefaultTrigger, Never
from tidemill.core.time.panes import EvenPanes, OnePane, Panes
from tidemill.core.time.sessions import SessionPanes
from tidemill.core.time.windows import WindowSpec


def panes_of(declared: SelfFiring | WindowSpec) -> Panes:
    """The windows of event time that decide which records are late; one that never ends where none is."""
    match declared:
        case TumblingBuffer(flush=TimePolicy(uses_clock=False) as time):
            return EvenPanes(size=time.micros, slide=time.micros, offset=0)
        case TumblingBuffer(sorts=True) | SlidingBuffer(sorts=True):
            # A record waits until the watermark has passed it, and for nothing else.
            return SessionPanes(gap=1)
        case TumblingBuffer() | SlidingBuffer():
            return OnePane()
        case RecordWindows():
            # The last window that a record may be in ends, at the latest, where a session of it alone would.
            return SessionPanes(gap=declared.micros)
        case _:
            return declared.panes


def waits_for_watermark(window: Ordered) -> bool:
    """Whether no window fires before the watermark has passed its end."""
    match window:
        case RecordWindows() | TumblingBuffer(flush=TimePolicy(uses_clock=False)):
            return True
        case EventWindows(trigger=AfterWatermark(early=None) | DefaultTrigger() | Never()):
            return True
        case _:
            return sorts(window)


def looks_at_clock(window: Ordered) -> bool:
    """Whether a window may fire because the clock of batches moves on."""
    if isinstance(window, EventWindows):
        return uses_clock(window.trigger)
    return any(isinstance(each, TimePolicy) and each.uses_clock for each in policies_of(window))
