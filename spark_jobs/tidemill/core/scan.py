"""How an engine reads planned offsets: values that a log makes and an engine understands.

Log and engine do not know each other. A log answers a plan with a scan; the engine turns the scan into
records with the columns `topic`, `partition`, `offset`, `timestamp`, `key`, `value`, `headers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidemill.core.offsets import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of a log. `value` is None for a tombstone. `timestamp` is aware."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetScan:
    """Parquet files that together hold every offset of `ranges`.

    The ranges are dense: exactly `len(range)` records each. Unless `exact`, the files hold other offsets too, which
    must be left out.
    """

    files: tuple[str, ...]
    ranges: tuple[OffsetRange, ...]
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryScan:
    """The records themselves, exactly those of `ranges`."""

    records: tuple[Record, ...]
    ranges: tuple[OffsetRange, ...]


Scan = ParquetScan | MemoryScan
