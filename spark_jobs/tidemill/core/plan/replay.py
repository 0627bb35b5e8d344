"""Tables of firings that are folded again, from some batch on: part of a backfill, or of a repair."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.core.plan.slices import SliceSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Tables of firings are folded again from batch `since` on, up to the last one.

    They begin with what keys kept in the slices `before`. The batch that does it leaves all of their state in its own
    slice. A backfill folds all keys, a repair those that its records belong to.
    """

    since: int
    before: SliceSet
