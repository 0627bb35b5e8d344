"""How an engine reads planned offsets: values that a log makes and an engine understands.

Log and engine do not know each other. A log answers a plan with a scan; the engine turns the scan into
records with the columns `topic`, `partition`, `offset`, `timestamp`, `key`, `value`, `headers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tidemill.core.log.connect_files import part_of
from tidemill.core.log.offsets import OffsetRange


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
    must be left out. `storage` is how Arrow reaches files that are not on this machine; it may hold secrets.
    """

    files: tuple[str, ...]
    ranges: tuple[OffsetRange, ...]
    exact: bool = False
    storage: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def dense(self) -> bool:
        """Whether the ranges hold as many records as they are long."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryScan:
    """The records themselves, exactly those of `ranges`."""

    records: tuple[Record, ...]
    ranges: tuple[OffsetRange, ...]

    @property
    def dense(self) -> bool:
        """Whether the ranges hold as many records as they are long."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScan:
    """The records as a table of Arrow, exactly those of `ranges`.

    `rows` has the columns `topic`, `partition`, `offset`, `timestamp` and `value`.
    """

    rows: Any = field(repr=False, compare=False)
    ranges: tuple[OffsetRange, ...]

    @property
    def dense(self) -> bool:
        """Whether the ranges hold as many records as they are long."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaScan:
    """Offsets of a topic of Kafka. They may have gaps: transactions that were aborted, records that compaction took.

    `java` and `client` are how Kafka's own client and its C library reach the cluster; they may hold secrets.
    """

    topic: str
    ranges: tuple[OffsetRange, ...]
    java: Mapping[str, str] = field(repr=False)
    client: Mapping[str, str] = field(repr=False)

    @property
    def dense(self) -> bool:
        """Whether the ranges hold as many records as they are long."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesScan:
    """Files with a record in each line, gzipped or not, whose names end with partition and offset of the first one.

    `+PARTITION+OFFSET.json` or `+PARTITION+OFFSET.json.gz`, as Kafka Connect writes them. `dense` says whether the
    ranges hold as many records as they are long. `storage` is as in `ParquetScan`.
    """

    files: tuple[str, ...]
    ranges: tuple[OffsetRange, ...]
    dense: bool = True
    storage: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def firsts(self) -> tuple[tuple[int, int], ...]:
        """Partition and first offset of each file."""
        return tuple(named for file in self.files if (named := part_of(file)))


Scan = ParquetScan | MemoryScan | TableScan | KafkaScan | LinesScan
