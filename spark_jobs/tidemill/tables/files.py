"""Inspects the files of a table without opening it, and finds the file because of which a read failed."""

from __future__ import annotations

import re

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.fs as pafs  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from deltalake.fs import DeltaStorageHandler

from tidemill.tables.interface import TableSpec


def is_newest(spec: TableSpec, version: int | None) -> bool:
    """Whether `version` is certainly the newest one; with None, whether there is certainly no table.

    It looks only at file names in the log, which takes about 0.1 ms; opening the table takes 3 ms.
    """
    try:
        files = DeltaStorageHandler(spec.uri, spec.options)
    except TableNotFoundError:
        return version is None
    if version is None:
        return _kinds(files, "_delta_log") == [pafs.FileType.NotFound]
    names = [f"_delta_log/{v:020}.json" for v in (version, version + 1)]
    return _kinds(files, *names) == [pafs.FileType.File, pafs.FileType.NotFound]


def _kinds(files: DeltaStorageHandler, *names: str) -> list[pafs.FileType]:
    return [info.type for info in files.get_file_info(list(names))]


_IN_A_FILE = re.compile(r"(?i)parquet|snappy|zstd|corrupt|decompress|thrift|magic|deserializ|page")


def damaged_file(handle: DeltaTable, spec: TableSpec, error: object = "") -> str | None:
    """The first damaged file of the table, and what is wrong with it; None when all files are right.

    It compares sizes first, then reads the end of each file; it reads whole files if `error` is about the content of a
    file. Call it only after an error, because it takes long.
    """
    files = pafs.PyFileSystem(DeltaStorageHandler(handle.table_uri, spec.options))
    listed = pa.table(handle.get_add_actions(flatten=True)).select(["path", "size_bytes"]).to_pylist()
    for file in listed:
        found = files.get_file_info(file["path"])
        if found.type is pafs.FileType.NotFound:
            return f"file {file['path']} is missing"
        if found.size != file["size_bytes"]:
            return f"file {file['path']} is damaged: expected {file['size_bytes']} bytes, found {found.size}"
    for file in listed:
        try:
            with files.open_input_file(file["path"]) as source:
                _read(source, whole=_IN_A_FILE.search(str(error)) is not None)
        except (pa.ArrowException, OSError) as found_there:
            return f"file {file['path']} is damaged: {' '.join(str(found_there).split())}"
    return None


def _read(source: pa.NativeFile, *, whole: bool) -> None:
    file = pq.ParquetFile(source)
    for group in range(file.num_row_groups if whole else 0):
        file.read_row_group(group)


def edges_of(handle: DeltaTable, column: str, rows: int) -> list[int]:
    """Where to split an integer column so that the first part has about `rows` rows, and each next one twice as many.

    It uses the bounds that the log has of each file; empty if some are missing. The last part begins at the last edge.
    """
    listing = pa.table(handle.get_add_actions(flatten=True))
    names = (f"max.{column}", "num_records")
    if not set(names) <= set(listing.column_names):
        return []
    files = list(zip(*(listing[name].to_pylist() for name in names), strict=True))
    if any(value is None for file in files for value in file):
        return []
    edges, there, wanted = [], 0, max(rows, 1)
    for most, count in sorted(files):
        there += count
        if there >= wanted:
            edges.append(most + 1)
            there, wanted = 0, 2 * wanted
    return edges
