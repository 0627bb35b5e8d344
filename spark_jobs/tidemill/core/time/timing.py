"""The timing of a firing, which says why a row of a window was published: as a function and as SQL.

The names are those of Apache Beam's `PaneInfo.Timing`, plus two for Tidemill's amendments.
"""

from __future__ import annotations

from enum import StrEnum


class Timing(StrEnum):
    """Why a row of a window was published.

    EARLY: before the watermark passed the end of the window. ON_TIME: by the batch that moved the watermark past it.
    LATE: after that, because of records that the window still allows. REPAIR: because records were processed once more
    from quarantine or late table. BACKFILL: because a backfill computed the window again.
    """

    EARLY = "EARLY"
    ON_TIME = "ON_TIME"
    LATE = "LATE"
    REPAIR = "REPAIR"
    BACKFILL = "BACKFILL"


def timing_of_live(end: int, before: int, after: int) -> Timing:
    """The timing of a window that ends at `end`, in a live batch that moves the watermark from `before` to `after`.

    All three are microseconds since 1970.
    """
    if end > after:
        return Timing.EARLY
    return Timing.ON_TIME if end > before else Timing.LATE


def timing_sql(end: str, before: int, after: int) -> str:
    """The timing in a live batch as Spark SQL; `end` is an SQL expression in microseconds."""
    early, on_time, late = (f"'{timing.value}'" for timing in (Timing.EARLY, Timing.ON_TIME, Timing.LATE))
    # The smallest 64-bit integer cannot be written as a literal.
    return (
        f"CASE WHEN {end} > CAST('{after}' AS BIGINT) THEN {early} "
        f"WHEN {end} > CAST('{before}' AS BIGINT) THEN {on_time} ELSE {late} END"
    )
