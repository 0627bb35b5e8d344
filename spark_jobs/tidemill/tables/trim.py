"""Keeps the log of a table short."""

from __future__ import annotations

import re

import pyarrow.fs as pafs  # type: ignore[import-untyped]
from deltalake.fs import DeltaStorageHandler

from tidemill.tables.handles import open_table
from tidemill.tables.interface import TableSpec

_LOG = "_delta_log"
# Hadoop's local file system keeps a checksum in a hidden file beside each file.
_ENTRY = re.compile(r"\.?(\d{20})\.(?:json|crc|checkpoint\.parquet|json\.crc|crc\.crc|checkpoint\.parquet\.crc)")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


def trim_log(spec: TableSpec, *, keep: int) -> int:
    """Remove log entries that none of the newest `keep` versions needs; return the number of files removed.

    On a plain folder, every operation lists the whole log: 2,000 commits add 10 ms to each. Versions before the last
    checkpoint that is at least `keep` versions old can no longer be read, and the log no longer says which plan their
    commits belong to: keep as many as a reader, a rewind or a retried batch may need. Rows, transactions and newer
    versions stay as they are, and writers may continue.
    """
    handle = open_table(spec)
    files = pafs.PyFileSystem(DeltaStorageHandler(handle.table_uri, spec.options))
    names = [info.base_name for info in files.get_file_info(pafs.FileSelector(_LOG))]
    checkpoints = [int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))]
    first = max((version for version in checkpoints if version <= handle.version() - keep), default=0)
    old = sorted((int(match[1]), name) for name in names if (match := _ENTRY.fullmatch(name)))
    gone = [name for version, name in old if version < first]
    # Oldest first: the rest of the log never has a gap.
    for name in gone:
        files.delete_file(f"{_LOG}/{name}")
    return len(gone)
