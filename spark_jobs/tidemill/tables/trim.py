"""Keeps the log of a table short."""

from __future__ import annotations

import re

import pyarrow.fs as pafs  # type: ignore[import-untyped]
from deltalake.fs import DeltaStorageHandler

from tidemill.tables.handles import open_table
from tidemill.tables.interface import TableSpec

_LOG = "_delta_log"
# Hadoop's local file system keeps a checksum beside a file, in a hidden one.
_ENTRY = re.compile(r"\.?(\d{20})\.(?:json|crc|checkpoint\.parquet|json\.crc|crc\.crc|checkpoint\.parquet\.crc)")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


def trim_log(spec: TableSpec, *, keep: int) -> int:
    """Removes log entries that no version among the newest `keep` needs; returns how many files went.

    On a plain folder every operation lists the whole log: 2,000 commits add 10 ms to each. Versions
    before the last checkpoint that is at least `keep` versions old can no longer be read, nor does the
    log say of which plan their commits were: keep as many as a reader, a rewind or a retried batch may
    ask for. Rows, transactions and newer versions are not touched, and writers may go on.
    """
    handle = open_table(spec)
    files = pafs.PyFileSystem(DeltaStorageHandler(handle.table_uri, spec.options))
    names = [info.base_name for info in files.get_file_info(pafs.FileSelector(_LOG))]
    checkpoints = [int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))]
    first = max((version for version in checkpoints if version <= handle.version() - keep), default=0)
    old = sorted((int(match[1]), name) for name in names if (match := _ENTRY.fullmatch(name)))
    gone = [name for version, name in old if version < first]
    # Oldest first: what is left is always one unbroken end of the log.
    for name in gone:
        files.delete_file(f"{_LOG}/{name}")
    return len(gone)
