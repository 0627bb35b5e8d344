"""Keeps the log of a table short."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import pyarrow.fs as pafs  # type: ignore[import-untyped]
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler

from tidemill.tables.handles import newest, open_table
from tidemill.tables.interface import TableSpec
from tidemill.tables.owner import OWNER

RETENTION = "delta.logRetentionDuration"
"""The property of a table that says how long Delta itself keeps the entries of its log."""

_KEEPING = (RETENTION, "delta.enableExpiredLogCleanup", "delta.enableChangeDataFeed")
"""Who has set one of these properties has decided how long the log stays, or has readers of it."""

_AT_ONCE = 5_000
"""The most files that `trim_unreadable` removes: on a bucket, each takes some hundredths of a second."""

_LOG = "_delta_log"
# Hadoop's local file system keeps a checksum in a hidden file beside each file.
_ENTRY = re.compile(r"\.?(\d{20})\.(?:json|crc|checkpoint\.parquet|json\.crc|crc\.crc|checkpoint\.parquet\.crc)")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_COMMIT = re.compile(r"(\d{20})\.json")


def trim_log(spec: TableSpec, *, keep: int) -> int:
    """Remove log entries that none of the newest `keep` versions needs; return the number of files removed.

    On a plain folder, every operation lists the whole log: 2,000 commits add 10 ms to each. Versions before the last
    checkpoint that is at least `keep` versions old can no longer be read, and the log no longer says which plan their
    commits belong to: keep as many as a reader, a rewind or a retried batch may need. Rows, transactions and newer
    versions stay as they are, and writers may continue.
    """
    log = _Log(open_table(spec), spec)
    return log.remove(log.before(log.handle.version() - keep))


def trim_unreadable(spec: TableSpec, *, oldest: int, opened: datetime, dry_run: bool = False) -> int:
    """Remove log entries that no version from `oldest` on needs; return the number of files removed.

    The version that readers found at the time `opened` stays readable, too. At most 5,000 files are removed, oldest
    first. Nothing is if the properties of the table say how long its log stays, or that others read its changes; nor
    from an older table that names no owner, who is only in its history. Otherwise as `trim_log`.
    """
    handle = newest(spec)
    told = {} if handle is None else handle.metadata().configuration
    if handle is None or any(name in told for name in _KEEPING) or (spec.owner and OWNER not in told):
        return 0
    log = _Log(handle, spec)
    found = log.version_at(opened)
    gone = () if found is None else log.before(min(oldest, found))[:_AT_ONCE]
    return len(gone) if dry_run else log.remove(gone)


@dataclass(frozen=True)
class _Log:
    """The files of the log of a table."""

    handle: DeltaTable
    spec: TableSpec

    @cached_property
    def _storage(self) -> pafs.PyFileSystem:
        return pafs.PyFileSystem(DeltaStorageHandler(self.handle.table_uri, self.spec.options))

    @cached_property
    def _files(self) -> Sequence[pafs.FileInfo]:
        return tuple(self._storage.get_file_info(pafs.FileSelector(_LOG)))

    def version_at(self, at: datetime) -> int | None:
        """The newest version whose commit was there at that time; None if the log has none so old."""
        there = ((_COMMIT.fullmatch(info.base_name), info.mtime) for info in self._files)
        return max((int(match[1]) for match, written in there if match and written and written <= at), default=None)

    def before(self, version: int) -> Sequence[str]:
        """The names of the files that neither this version nor a newer one needs, oldest first."""
        names = [info.base_name for info in self._files]
        checkpoints = [int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))]
        first = max((each for each in checkpoints if each <= version), default=0)
        old = sorted((int(match[1]), name) for name in names if (match := _ENTRY.fullmatch(name)))
        return [name for each, name in old if each < first]

    def remove(self, names: Sequence[str]) -> int:
        """Remove these files in this order, so that the rest of the log never has a gap; return how many they are."""
        for name in names:
            # Somebody else may clean up at the same time.
            with suppress(FileNotFoundError):
                self._storage.delete_file(f"{_LOG}/{name}")
        return len(names)
