"""How pages write values: the filters of their templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.amendments import Ranges
from tidemill.core.time.times import moment, show_clock, show_moment
from tidemill.core.time.watermarks import BEGINNING, END

MOST = 300
"""The most characters of a value that pages show."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_NOT_KNOWN = "\N{EN DASH}"
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def number(value: float | None) -> str:
    """A count with separators, or a rate with one digit; a dash if it is not known."""
    if value is None:
        return _NOT_KNOWN
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def seconds(value: float | None) -> str:
    """A duration in seconds for people: `0.84 s`, `3 min 20 s`, `2 h 5 min`."""
    if value is None:
        return _NOT_KNOWN
    if value < 10:
        return f"{max(value, 0):.2f} s"
    if value < 60:
        return f"{value:.1f} s"
    whole = int(value)
    days, hours, minutes = whole // 86_400, whole // 3_600 % 24, whole // 60 % 60
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min {whole % 60} s" if whole % 60 else f"{minutes} min"


def ago(then: datetime | None, now: datetime | None = None) -> str:
    """How long ago a moment was, in its largest unit; "never" without one."""
    if then is None:
        return "never"
    passed = int(((now or datetime.now(UTC)) - then).total_seconds())
    for unit, length in _UNITS:
        if passed >= length:
            return f"{passed // length} {unit} ago"
    return f"{max(passed, 0)} s ago"


def clock(value: datetime | int | None) -> str:
    """A moment in UTC, to the second; a dash without one."""
    if value is None:
        return _NOT_KNOWN
    return show_clock(moment(value) if isinstance(value, int) else value)


def watermark(value: int | None) -> str:
    """A watermark for people."""
    if value is None or value == BEGINNING:
        return "none yet"
    return "end of input" if value == END else clock(value)


def iso(value: datetime | int) -> str:
    """A moment as `datetime` of an element of HTML, or in a link."""
    return (moment(value) if isinstance(value, int) else value).isoformat()


def offsets(ranges: Ranges) -> list[str]:
    """The offsets of a batch, one text for each partition."""
    found: Iterable[OffsetRange] = (each for items in ranges.values() for each in items)
    return [f"{r.topic_partition} {r.from_offset:,} to {r.until_offset:,}" for r in found]


def text(value: Any) -> str:
    """A value of a record or a row: bytes as text, control characters escaped, and cut after `MOST` characters."""
    if value is None:
        return "null"
    if isinstance(value, datetime):
        return show_moment(value)
    written = value[: 4 * MOST].decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    plain = _CONTROL.sub(lambda found: ascii(found[0])[1:-1], written)
    return plain if len(plain) <= MOST else f"{plain[:MOST]}…"


def share(value: float | None) -> str:
    """A part of a whole in percent."""
    if value is None:
        return ""
    return "< 0.1 %" if 0 < value < 0.001 else f"{value * 100:.1f} %" if value < 0.9995 or value > 1 else "100 %"


FILTERS: Mapping[str, Any] = {
    "number": number,
    "seconds": seconds,
    "ago": ago,
    "clock": clock,
    "watermark": watermark,
    "iso": iso,
    "offsets": offsets,
    "text": text,
    "share": share,
}
