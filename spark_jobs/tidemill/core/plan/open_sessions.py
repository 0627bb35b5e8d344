"""From when on sessions may be open."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSessions:
    """Sessions that start before `since`, an event time in microseconds, are closed: live batches do not read them.

    That holds as long as records may not be later than `allowed_lateness`, in microseconds.
    """

    since: int
    allowed_lateness: int
