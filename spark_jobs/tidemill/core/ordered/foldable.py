"""What is folded record by record, of each key."""

from __future__ import annotations

from typing import TypeAlias

from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.policies import CountPolicy, DeltaPolicy
from tidemill.core.ordered.record_windows import RecordWindows
from tidemill.core.ordered.self_firing import SelfFiring

Ordered: TypeAlias = SelfFiring | EventWindows
"""Buffers, windows that records define, and windows of event time with a trigger."""


def policies_of(window: Ordered) -> tuple[object, ...]:
    """What decides when a window fires and what it keeps."""
    match window:
        case TumblingBuffer(flush=flush):
            return (flush,)
        case SlidingBuffer(evict=evict, trigger=trigger):
            return evict, trigger
        case EventWindows(evictor=evictor):
            return () if evictor is None else (evictor,)
        case RecordWindows():
            return ()


def sorts(window: Ordered) -> bool:
    """Whether records wait for the watermark, to be taken in order of event time."""
    return isinstance(window, TumblingBuffer | SlidingBuffer) and window.sorts


def waits_for_time(window: Ordered) -> bool:
    """Whether time alone, without a record, can do something to a key."""
    if not isinstance(window, TumblingBuffer | SlidingBuffer) or window.idle_timeout is not None or window.sorts:
        return True
    return not all(isinstance(policy, CountPolicy | DeltaPolicy) for policy in policies_of(window))
