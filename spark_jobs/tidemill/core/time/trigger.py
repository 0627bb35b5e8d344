"""When windows are published."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from tidemill.core.time.watermarks import END


class Trigger(StrEnum):
    """When a window's rows are published.

    ON_CLOSE: once when the watermark passes the end of the window, and again for each batch that brings it late records
    that are still allowed. ON_UPDATE: for each batch that brings the window records. Both upsert by window and key.
    """

    ON_CLOSE = "on_close"
    ON_UPDATE = "on_update"

    @property
    def fires_on_close(self) -> bool:
        """Whether a window fires when the watermark passes its end, even if the batch brought it no records."""
        match self:
            case Trigger.ON_CLOSE:
                return True
            case Trigger.ON_UPDATE:
                return False
            case _:
                assert_never(self)

    def touched_until(self, watermark: int) -> int:
        """Windows that end at this event time or earlier fire if a batch that starts at `watermark` touches them."""
        match self:
            case Trigger.ON_CLOSE:
                return watermark
            case Trigger.ON_UPDATE:
                return END
            case _:
                assert_never(self)

    @property
    def text(self) -> str:
        """When windows are published, for people."""
        match self:
            case Trigger.ON_CLOSE:
                return "when it closes"
            case Trigger.ON_UPDATE:
                return "with every batch that changes it"
            case _:
                assert_never(self)
