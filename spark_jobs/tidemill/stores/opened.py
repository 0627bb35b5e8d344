"""Opens the store at an address, and its files for Arrow and Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.fs as pafs  # type: ignore[import-untyped]

from tidemill.stores.interface import PREFIX, Store
from tidemill.stores.local import LocalStore

if TYPE_CHECKING:
    from tidemill.stores.access import S3Access


def store_at(uri: str, access: S3Access | None) -> Store:
    """The store below a path on this machine, or below an address of S3, which needs `access`."""
    if not uri.startswith(PREFIX):
        return LocalStore(uri)
    # It loads botocore, which takes time that only users of S3 should spend.
    from tidemill.stores.s3 import S3Store  # noqa: PLC0415

    assert access is not None
    return S3Store(uri, access, checks_writer=True)


def opened(uri: str, storage: Mapping[str, str]) -> pa.NativeFile | str:
    """A file in the form that Arrow reads: its path on this machine, or a stream from the store."""
    if not uri.startswith(PREFIX):
        return uri
    from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415  a DAG is parsed without it

    place = PurePosixPath(uri.removeprefix(PREFIX))
    files = pafs.PyFileSystem(DeltaStorageHandler(f"{PREFIX}{place.parent}", dict(storage)))
    return files.open_input_file(place.name)


def for_spark(uri: str) -> str:
    """The address in the form of Hadoop's file systems, in which S3 has another scheme."""
    return f"s3a://{uri.removeprefix(PREFIX)}" if uri.startswith(PREFIX) else uri
