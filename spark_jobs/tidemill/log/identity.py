"""Producer ids and digests: they identify an input, so that a repeated append finds the records it already wrote."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.errors import LogInputError

OF_FILES = "file/"
"""Prefix of producer ids made from the content of files."""

ANONYMOUS = "input/"
"""Prefix of random producer ids, for inputs that can be read only once."""


def id_of_files(paths: Sequence[str]) -> str:
    """Return the producer id of these files, in this order. It depends on their content only, not on their paths.

    Raises:
        LogInputError: a file cannot be read.
    """
    whole = hashlib.blake2b(digest_size=12)
    for path in paths:
        try:
            with Path(path).open("rb") as file:
                whole.update(hashlib.file_digest(file, "blake2b").digest())
        except OSError as error:
            raise LogInputError(f"{path} cannot be read: {error.strerror or error}") from error
    return OF_FILES + whole.hexdigest()


def new_id() -> str:
    """Return a random producer id."""
    return ANONYMOUS + uuid.uuid4().hex[:16]


def digest_of(records: pa.Table) -> str:
    """A digest of keys, values, times and headers of records with `INPUT_SCHEMA`, in their order."""
    whole = hashlib.blake2b(digest_size=8)
    for name in ("key", "value"):
        _add_binary(whole, _flat(records[name]))
    times = _flat(records["timestamp"])
    whole.update(np.asarray(times.is_valid()).tobytes())
    whole.update(np.asarray(times.cast(pa.int64()).fill_null(0)).tobytes())
    headers = records["headers"]
    if headers.null_count < len(headers):
        whole.update(repr(headers.to_pylist()).encode())
    return whole.hexdigest()


def _add_binary(whole: hashlib.blake2b, column: pa.Array) -> None:
    if not len(column):
        return
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    whole.update(np.asarray(column.is_valid()).tobytes())
    whole.update(np.diff(ends).tobytes())
    if data is not None:
        whole.update(memoryview(data)[int(ends[0]) : int(ends[-1])])


def _flat(column: pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks()
    return pa.concat_arrays(flat.chunks) if isinstance(flat, pa.ChunkedArray) else flat
