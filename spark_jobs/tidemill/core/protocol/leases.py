"""Leases: whether the holder of a claim is still working, without comparing the clocks of two machines.

While a process executes a batch, it renews a small object beside the ledger, its lease; its claim names the lease. A
process that wants the batch looks at that object once:

- The object is gone: the attempt has ended, and the process that ended it removed the lease.
- Both processes run on one kernel: its monotonic clock, which nobody can set, says how old the newest beat is.
- Otherwise the store's own clock tells the age: the store marked the object with it and answers by it. A store's
  clock may jump, too. So a lease that looks too old, or newer than now, is watched for a few beats; if it changes, it
  is held.

A lease only says when a batch may be taken over. Claims alone ensure that an older attempt changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

LONGEST_BEAT = timedelta(seconds=10)
_MISSED = 4
"""The number of missed beats after which a holder counts as stopped."""


class Holder(StrEnum):
    """What is known about the holder of a claim; `UNKNOWN` when the claim names no lease."""

    WORKS = "works"
    STOPPED = "stopped"
    DOUBTFUL = "doubtful"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A reading of a monotonic clock. Two readings can be compared if `kernel` is the same and not empty."""

    kernel: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """The content of a lease: number of the renewal, seconds between two renewals, and the holder's clock by then."""

    number: int
    every: float
    clock: Clock


def beat_every(takeover_after: timedelta) -> timedelta:
    """The time between two renewals of a lease."""
    return min(takeover_after / _MISSED, LONGEST_BEAT)


def holder_of(beat: Beat, *, age: timedelta, here: Clock, takeover_after: timedelta) -> Holder:
    """What one look at a lease says about its holder.

    `age` is the age of the object by the store's clock, `here` the observer's clock. The answer is `DOUBTFUL` when only
    watching the lease can tell.
    """
    missed = timedelta(seconds=beat.every * _MISSED)
    patience = max(takeover_after, missed)
    if here.kernel and here.kernel == beat.clock.kernel:
        silent = timedelta(seconds=here.seconds - beat.clock.seconds)
        return Holder.WORKS if silent <= patience else Holder.STOPPED
    return Holder.WORKS if -missed <= age <= patience else Holder.DOUBTFUL


def watch_for(beat: Beat) -> timedelta:
    """How long to watch a doubtful lease for its next beat."""
    return timedelta(seconds=beat.every * (_MISSED - 1))
