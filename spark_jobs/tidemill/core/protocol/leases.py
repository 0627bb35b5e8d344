"""Leases: whether the holder of a claim still works, said without comparing the clocks of two machines.

While a process executes a batch, it renews a small object beside the ledger, its lease, which its claim names. Whoever
wants the batch looks at that object once:

- It is gone: the attempt has ended, and whoever ended it removed the lease.
- Both run on one kernel: its monotonic clock, which nobody can set, says how old the newest beat is.
- Else the store's own clock says it, by which it marked the object and answers now. A store's clock may jump, too; so a
  lease that looks too old, or newer than now, is watched for a few beats. One that changes is held.

A lease is about time alone: that an older attempt changes nothing is the claim's business, whatever a lease says.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

LONGEST_BEAT = timedelta(seconds=10)
_MISSED = 4
"""So many beats may fail to arrive before their holder counts as stopped."""


class Holder(StrEnum):
    """What is known of a claim's holder. It is `UNKNOWN` when the claim names no lease."""

    WORKS = "works"
    STOPPED = "stopped"
    DOUBTFUL = "doubtful"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A monotonic clock: `seconds` of two readings can be compared where `kernel` is the same and not empty."""

    kernel: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What a lease says: the how manieth renewal it is, made when by the holder's clock, and seconds between two."""

    number: int
    every: float
    clock: Clock


def beat_every(takeover_after: timedelta) -> timedelta:
    """How often a lease is renewed."""
    return min(takeover_after / _MISSED, LONGEST_BEAT)


def holder_of(beat: Beat, *, age: timedelta, here: Clock, takeover_after: timedelta) -> Holder:
    """What one look at a lease says of its holder.

    `age` is how old the object is by the store's clock, `here` the observer's clock. The answer is `DOUBTFUL` when only
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
