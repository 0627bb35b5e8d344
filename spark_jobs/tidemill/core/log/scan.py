"""How an engine reads planned offsets: scans, which a log makes and an engine understands.

Log and engine do not know each other. A log turns a plan into a scan; the engine turns the scan into
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
    """One record of a log. `value` is None for a tombstone. `timestamp` has a time zone."""

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

    The ranges are dense: each holds exactly `len(range)` records. Unless `exact`, the files also hold other offsets,
    which the engine must leave out. `storage` says how Arrow reaches files that are not on this machine; it may hold
    secrets.
    """

    files: tuple[str, ...]
    ranges: tuple[OffsetRange, ...]
    exact: bool = False
    storage: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def dense(self) -> bool:
        """Whether the ranges hold as many records as they are long."""
        return True

    @property
    def rereadable(self) -> bool:
        """Whether every job of a batch may read the records again; if not, the first keeps them for the others."""
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

    @property
    def rereadable(self) -> bool:
        """Whether every job of a batch may read the records again; if not, the first keeps them for the others."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScan:
    """The records as an Arrow table, exactly those of `ranges`.

    `rows` has the columns `topic`, `partition`, `offset`, `timestamp` and `value`. `dense` says whether the ranges hold
    as many records as they are long.
    """

    rows: Any = field(repr=False, compare=False)
    ranges: tuple[OffsetRange, ...]
    dense: bool = True

    @property
    def rereadable(self) -> bool:
        """Whether every job of a batch may read the records again; if not, the first keeps them for the others."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaScan:
    """Offsets of a Kafka topic. They may have gaps: aborted transactions, and records that compaction removed.

    `java` and `client` are the settings of Kafka's Java client and of its C library; they may hold secrets.
    """

    topic: str
    ranges: tuple[OffsetRange, ...]
    java: Mapping[str, str] = field(repr=False)
    client: Mapping[str, str] = field(repr=False)

    @property
    def dense(self) -> bool:
        """Whether the ranges hold as many records as they are long."""
        return False

    @property
    def rereadable(self) -> bool:
        """Each job would ask the brokers again, which may have deleted the records."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesScan:
    """Files with one record in each line, gzipped or not, named after partition and offset of their first record.

    Names end in `+PARTITION+OFFSET.json` or `+PARTITION+OFFSET.json.gz`, as Kafka Connect writes them. `dense` says
    whether each range holds as many records as it is long. `storage` is as in `ParquetScan`.
    """

    files: tuple[str, ...]
    ranges: tuple[OffsetRange, ...]
    dense: bool = True
    storage: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def rereadable(self) -> bool:
        """Whether every job of a batch may read the records again; if not, the first keeps them for the others."""
        return True

    @property
    def firsts(self) -> tuple[tuple[int, int], ...]:
        """The partition and first offset in each file's name."""
        return tuple(named for file in self.files if (named := part_of(file)))


Scan = ParquetScan | MemoryScan | TableScan | KafkaScan | LinesScan
