"""What Tidemill needs from a file system or an object store besides tables: a few operations on whole objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

PREFIX = "s3://"
"""The prefix of addresses in S3."""

KNOWN_STORES = "use a store that knows If-None-Match: Amazon S3, MinIO, Ceph, versitygw and others in newer versions"
"""The advice for a store without conditional writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The last bytes of an object, and the size of the whole object."""

    data: bytes
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Aged:
    """A whole object, and its age; the store's own clock tells both times, if it has one."""

    data: bytes
    age: timedelta


class Store(Protocol):
    """Objects by name, with `/` between folders. An object appears whole or not at all; only `replace` changes one."""

    def list(self, folder: str, after: str = "") -> Sequence[str]:
        """The names of the objects and folders directly in `folder`, in any order; empty if it does not exist.

        Names up to `after`, by the order of their characters, may be left out: a bucket tells 1,000 names a request.
        """
        ...

    def read(self, name: str) -> bytes:
        """All of an object.

        Raises:
            FileNotFoundError: the object does not exist.
        """
        ...

    def tail(self, name: str, length: int) -> Tail:
        """The last `length` bytes of an object, or all of them if it is shorter.

        Raises:
            FileNotFoundError: the object does not exist.
        """
        ...

    def sizes(self, folder: str) -> dict[str, int]:
        """The size in bytes of each object directly in `folder`."""
        ...

    def check_writer(self) -> None:
        """Check that the store refuses the second of two writers of one name; call it before a table is written.

        The check runs once and takes a few small requests. Callers that only read need no right to write.

        Raises:
            StoreError: the store lets a second writer take a name, or refuses to write.
        """
        ...

    def put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        """Make the object durable under a free name; if the name is taken, do nothing and return False."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Put a small object in place of any earlier one. A loss of power may lose it: never put data that counts."""
        ...

    def aged(self, name: str) -> Aged:
        """The whole object and its age. The clock of this machine is not used if the store has its own.

        Raises:
            FileNotFoundError: the object does not exist.
        """
        ...

    def delete(self, name: str) -> None:
        """Remove an object; no error if it does not exist."""
        ...

    def delete_folder(self, folder: str) -> None:
        """Remove a folder with everything in it; no error if it does not exist."""
        ...

    def locate(self, name: str) -> str:
        """The address of an object: a path or a URI."""
        ...
