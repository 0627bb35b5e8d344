"""What the firings of a batch leave for its position and its commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidemill.core.plan.position import Position


@dataclass(kw_only=True)
class Noted:
    """What is found while tables fire.

    `due` has for each table the clock at which time alone has something to do, `oldest_open` the start of the oldest
    window that may still change; both say nothing before anything `fired`. `lost` counts records whose windows had a
    finished trigger. If `anew`, the slice holds all state of tables of firings.
    """

    fired: bool = False
    due: dict[str, int] = field(default_factory=dict)
    oldest_open: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    anew: bool = False

    def on(self, position: Position) -> Position:
        """The position of this batch with it."""
        if self.fired:
            position = replace(position, due=_or_none(self.due), oldest_open=_or_none(self.oldest_open))
        return replace(position, firings_from=position.batch_id) if self.anew else position


def _or_none(times: Mapping[str, int]) -> Mapping[str, int] | None:
    return dict(times) or None
