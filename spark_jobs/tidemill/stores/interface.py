"""What is asked of a file system or an object store beside its tables: a few operations on whole objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

PREFIX = "s3://"
"""What addresses in S3 begin with."""

KNOWN_STORES = "use a store that knows If-None-Match: Amazon S3, MinIO, Ceph, versitygw and others in newer versions"
"""What to do about a store without conditional writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The last bytes of an object, and the size of all of it."""

    data: bytes
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Aged:
    """All of an object, and how long ago it was written, both moments told by the store's own clock."""

    data: bytes
    age: timedelta


class Store(Protocol):
    """Objects by name, `/` between folders. An object appears whole or not at all; only `replace` changes one."""

    def list(self, folder: str) -> Sequence[str]:
        """The names of the objects and folders directly in `folder`, in no order; none if it is not there."""
        ...

    def read(self, name: str) -> bytes:
        """All of an object.

        Raises:
            FileNotFoundError: there is none.
        """
        ...

    def tail(self, name: str, length: int) -> Tail:
        """The last `length` bytes of an object, or all of them if it is shorter.

        Raises:
            FileNotFoundError: there is none.
        """
        ...

    def sizes(self, folder: str) -> dict[str, int]:
        """The bytes of each object directly in `folder`."""
        ...

    def check_writer(self) -> None:
        """To be called before a table of the store is written: of two writers of one name it must refuse one.

        It is looked at once, with some small requests. Whoever only reads needs no right to write.

        Raises:
            StoreError: the store lets a later writer take a name that is taken, or may not be written to.
        """
        ...

    def put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        """Make the object durable under a name that is free; False, and nothing done, when it is taken."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Put a small object, whatever was there. It may be lost with the power: nothing that counts is put so."""
        ...

    def aged(self, name: str) -> Aged:
        """All of an object, and its age. No clock of this machine is asked, if the store has one of its own.

        Raises:
            FileNotFoundError: there is none.
        """
        ...

    def delete(self, name: str) -> None:
        """Remove an object; one that is not there is no error."""
        ...

    def delete_folder(self, folder: str) -> None:
        """Remove everything in a folder, and the folder; one that is not there is no error."""
        ...

    def locate(self, name: str) -> str:
        """Its address, a path or a URI."""
        ...
