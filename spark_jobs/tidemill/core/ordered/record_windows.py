"""Windows of event time that records define: Kafka Streams calls them sliding windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tidemill.core.time.times import duration, micros, positive_duration, show_duration


@dataclass(frozen=True, slots=True)
class RecordWindows:
    """Windows of one length, two for each record of a key: one ends with the record, one starts right after it.

    The first is `[t + 1 µs - size, t + 1 µs)` for a record at `t`, the second `[t + 1 µs, t + 1 µs + size)`; the second
    is there only if it has records. Records at the same time make the same windows.

    A window fires once, when the watermark reaches its end. A record is late when `t + size` is not after the
    watermark: all windows that it could be in have fired. One that is not late joins the windows that have not fired
    yet, and those that have stay as they are.

    Args:
        size: the length of every window, longer than nothing.

    Raises:
        DeclarationError: the size is no such duration.
    """

    size: str | timedelta

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", positive_duration(self.size, "the size of RecordWindows"))

    @property
    def micros(self) -> int:
        """The size in microseconds."""
        return micros(duration(self.size))

    def __str__(self) -> str:
        return f"windows of {show_duration(duration(self.size))} that end with a record or start after one"
