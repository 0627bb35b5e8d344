"""Keys and times taken from the fields of a row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from tidemill.core.time.times import FIRST, LAST, micros

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?\Z")


class TimeUnit(StrEnum):
    """The unit of a number that counts time since 1970."""

    SECONDS = "s"
    MILLISECONDS = "ms"
    MICROSECONDS = "us"


_MICROSECONDS = {TimeUnit.SECONDS: 1_000_000, TimeUnit.MILLISECONDS: 1_000, TimeUnit.MICROSECONDS: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChoice:
    """Which fields of a row become the key and the timestamp of its record. None: no key, or the time of the append."""

    key: str | None = None
    time: str | None = None
    unit: TimeUnit = TimeUnit.MILLISECONDS

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that every row must have."""
        return tuple(name for name in (self.key, self.time) if name is not None)


def key_bytes(value: object) -> bytes | None:
    """Convert a value to a key: text as UTF-8, anything else as JSON. None means no key."""
    match value:
        case None | bytes():
            return value
        case str():
            return value.encode()
        case _:
            text = msgspec.json.encode(value)
            return msgspec.json.decode(text, type=str).encode() if text[:1] == b'"' else text


def microseconds(value: object, unit: TimeUnit) -> int | None:
    """Convert a time to microseconds since 1970; None for None and empty text.

    Text is ISO 8601, in UTC if it names no zone, or a number.

    Raises:
        ValueError: the value is not a time, or not in the years 1 to 9999.
    """
    match value:
        case bool():
            raise ValueError(f"{value!r} is no time")
        case int() | float():
            found = _scaled(value, unit)
        case None | "":
            return None
        case datetime():
            found = micros(value if value.tzinfo else value.replace(tzinfo=UTC))
            if not FIRST <= found <= LAST:
                raise ValueError(f"{value} is not in the years 1 to 9999 of UTC")
            return found
        case str() if _NUMBER.match(value):
            found = _scaled(float(value) if "." in value else int(value), unit)
        case str():
            return microseconds(datetime.fromisoformat(value), unit)
        case _:
            raise ValueError(f"{value!r} is no time")
    if not FIRST <= found <= LAST:
        raise ValueError(f"{value!r} {unit.value} since 1970 is not in the years 1 to 9999")
    return found


def _scaled(value: int | float, unit: TimeUnit) -> int:
    try:
        return round(value * _MICROSECONDS[unit])
    except OverflowError as error:
        raise ValueError(f"{value!r} is no time") from error
