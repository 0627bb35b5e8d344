"""What a declaration says of the firings of a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """How the firings of a window relate (`tidemill.core.ordered.accumulation`), and which columns tell of them.

    `accept_loss` allows a trigger that can finish while its window still takes records. Without `empty_on_time` a
    window does not fire on time if no record came since its last firing.
    """

    accumulation: str | None = None
    accept_loss: bool = False
    empty_on_time: bool = True
    index: str | None = None
    last: str | None = None
    operation: str | None = None
