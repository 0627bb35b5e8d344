"""How the firings of one window relate."""

from __future__ import annotations

from enum import StrEnum


class Accumulation(StrEnum):
    """How the firings of one window relate.

    DISCARDING: each holds the records since the firing before. ACCUMULATING: each holds all records of the window so
    far, in place of the firing before. RETRACTING: as accumulating, and each names the firings that it takes back.
    REPLACING: as accumulating, and the published row of the firing before is updated.
    """

    DISCARDING = "discarding"
    ACCUMULATING = "accumulating"
    RETRACTING = "accumulating_and_retracting"
    REPLACING = "accumulating_and_replacing"
