"""The store at an address, and what is asked of it before anything is trusted to it."""

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
    """The objects below a path of this machine, or below an address of S3, for which `access` is needed."""
    if not uri.startswith(PREFIX):
        return LocalStore(uri)
    # Loads botocore, which only those wait for who need it.
    from tidemill.stores.s3 import S3Store  # noqa: PLC0415

    assert access is not None
    return S3Store(uri, access, checks_writer=True)


def opened(uri: str, storage: Mapping[str, str]) -> pa.NativeFile | str:
    """What Arrow reads a file from: its path on this machine, or a stream of the store."""
    if not uri.startswith(PREFIX):
        return uri
    from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415  a DAG is parsed without it

    place = PurePosixPath(uri.removeprefix(PREFIX))
    files = pafs.PyFileSystem(DeltaStorageHandler(f"{PREFIX}{place.parent}", dict(storage)))
    return files.open_input_file(place.name)


def for_spark(uri: str) -> str:
    """The same place in Hadoop's file systems, where S3 has another scheme."""
    return f"s3a://{uri.removeprefix(PREFIX)}" if uri.startswith(PREFIX) else uri
