"""Objects in a bucket of S3, or of a compatible store."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from tidemill.core.errors import CommitUnknown, StoreError, StoreUnreachable
from tidemill.stores.access import S3Access
from tidemill.stores.interface import KNOWN_STORES, PREFIX, Aged, Tail

_TRIES = 8
_PAGE = 1_000
_MARK = "tidemill-write"
_TEST = ".tidemill/taken"
_ABSENT = ("NoSuchKey", "404")
_TAKEN = ("PreconditionFailed", "412")
_TOGETHER = ("ConditionalRequestConflict", "409")
_Page = tuple[dict[str, int], list[str]]
_NOT_THERE = ("NotImplemented", "501")
_REFUSED = ("SlowDown", "ServiceUnavailable", "503")
_LATER = ("SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "500", "502", "503", "504")


class S3Store:
    """A `Store` below a prefix of a bucket, for any number of processes at once.

    A name is taken by a conditional put. If the answer is lost, the client asks again and is refused because of its own
    object. So each object carries a mark of its writer, and a refused writer looks whose object it is. With
    `checks_writer`, conditional puts of the store are tested before the first write.
    """

    def __init__(self, uri: str, access: S3Access, *, checks_writer: bool = False) -> None:
        self._bucket, _, prefix = uri.removeprefix(PREFIX).partition("/")
        self._prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self._access = access
        self._is_checked = not checks_writer

    def list(self, folder: str, after: str = "") -> Sequence[str]:
        """The names of the objects and folders directly in `folder`, those after a name; empty if it does not exist."""
        start = {"StartAfter": self._key(f"{folder}/{after}" if folder else after)} if after else {}
        found = [name for page in self._pages(folder, Delimiter="/", **start) for name in (*page[0], *page[1])]
        # A folder is listed if something in it sorts after the key, which its own name may not do.
        return [name for name in found if name > after]

    def read(self, name: str) -> bytes:
        """The whole object; FileNotFoundError if it does not exist."""
        with self._explained(name):
            return bytes(self._client.get_object(Bucket=self._bucket, Key=self._key(name))["Body"].read())

    def tail(self, name: str, length: int) -> Tail:
        """The last `length` bytes of an object; FileNotFoundError if it does not exist."""
        with self._explained(name):
            try:
                found = self._client.get_object(
                    Bucket=self._bucket, Key=self._key(name), Range=f"bytes=-{max(length, 1)}"
                )
            except ClientError as error:
                if _code(error) == "InvalidRange":
                    return Tail(data=b"", size=0)
                raise
            data = found["Body"].read()
            _, _, size = found.get("ContentRange", "").rpartition("/")
            return Tail(data=data, size=int(size) if size else len(data))

    def sizes(self, folder: str) -> dict[str, int]:
        """The size in bytes of each object directly in `folder`."""
        return {name: size for page in self._pages(folder, Delimiter="/") for name, size in page[0].items()}

    def put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        """Make the object durable under a free name; False if the name is taken.

        Raises:
            CommitUnknown: it is not known whether the object was written.
        """
        self.check_writer()
        return self._put_if_absent(name, data)

    def check_writer(self) -> None:
        """Check once that the store refuses the second of two writers of one name; StoreError if it does not."""
        if not self._is_checked:
            if self._put_if_absent(_TEST, b"") and self._put_if_absent(_TEST, b""):
                raise StoreError(
                    f"{self.locate(_TEST)} was written twice, and the second time should have been refused: this store "
                    "has no conditional writes, and of two writers that commit at once one would be lost",
                    fix=KNOWN_STORES,
                )
            self._is_checked = True

    def _put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        mark = uuid.uuid4().hex
        body = data if isinstance(data, bytes) else data.to_pybytes()
        with self._explained(name):
            for attempt in range(_TRIES):
                try:
                    self._put(name, body, mark)
                except (ClientError, BotoCoreError) as error:
                    code = _code(error)
                    if code in _TAKEN:
                        return self._found_out(name, mark, error)
                    # Another process is writing the same name: in a moment it is known which one won.
                    if code in _TOGETHER and attempt < _TRIES - 1:
                        time.sleep(0.05 * 2**attempt)
                        continue
                    # The client may have tried several times, and the answer to an earlier try may be lost.
                    is_first = not _retries(error)
                    if is_first and code in _NOT_THERE:
                        raise self._unconditional(name) from error
                    if is_first and (code in _REFUSED or code not in (*_LATER, "")):
                        raise
                    return self._found_out(name, mark, error)
                else:
                    return True
        raise AssertionError("unreachable")

    def replace(self, name: str, data: bytes) -> None:
        """Put a small object in place of any earlier one."""
        with self._explained(name):
            self._client.put_object(Bucket=self._bucket, Key=self._key(name), Body=data)

    def aged(self, name: str) -> Aged:
        """The object and its age; every answer of the store has the store's present time."""
        with self._explained(name):
            found = self._client.get_object(Bucket=self._bucket, Key=self._key(name))
            now = parsedate_to_datetime(found["ResponseMetadata"]["HTTPHeaders"]["date"])
            return Aged(data=bytes(found["Body"].read()), age=now - found["LastModified"])

    def _unconditional(self, name: str) -> StoreError:
        return StoreError(
            f"{self.locate(name)}: the store refuses a write under a condition: it has no conditional writes, and of "
            "two writers that commit at once one would be lost",
            fix=KNOWN_STORES,
        )

    def delete(self, name: str) -> None:
        """Remove an object, if it exists."""
        with self._explained(name):
            self._client.delete_object(Bucket=self._bucket, Key=self._key(name))

    def delete_folder(self, folder: str) -> None:
        """Remove a folder with everything in it, if it exists; StoreError if an object stays."""
        for page in list(self._pages(folder)):
            keys = [{"Key": f"{self._key(folder)}/{name}"} for name in page[0]]
            with self._explained(folder):
                if not keys:
                    continue
                answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
                for left in answer.get("Errors", ())[:1]:
                    said = f"{left.get('Code')}: {left.get('Message')}"
                    raise StoreError(
                        f"{PREFIX}{self._bucket}/{left.get('Key')} was not deleted: {said}", fix="try again"
                    )

    def locate(self, name: str) -> str:
        """The URI of an object."""
        return f"{PREFIX}{self._bucket}/{self._key(name)}"

    @cached_property
    def _client(self) -> Any:
        return self._access.client()

    def _key(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def _put(self, name: str, body: bytes, mark: str) -> None:
        self._client.put_object(
            Bucket=self._bucket, Key=self._key(name), Body=body, IfNoneMatch="*", Metadata={_MARK: mark}
        )

    def _found_out(self, name: str, mark: str, cause: Exception) -> bool:
        """Whether a put without a clear answer wrote the object.

        Raises:
            CommitUnknown: the store does not answer, or the object does not exist now.
        """
        try:
            return self._is_mine(name, mark)
        except (ClientError, BotoCoreError):
            raise CommitUnknown(
                f"{self.locate(name)} was written or not: the store does not answer: {cause}", fix="try again"
            ) from cause

    def _is_mine(self, name: str, mark: str) -> bool:
        try:
            found = self._client.head_object(Bucket=self._bucket, Key=self._key(name))
        except ClientError as error:
            if _code(error) not in _ABSENT:
                raise
            raise CommitUnknown(
                f"{self.locate(name)} was written or not: there is nothing of that name now", fix="try again"
            ) from None
        return bool(found.get("Metadata", {}).get(_MARK) == mark)

    def _pages(self, folder: str, **more: Any) -> Iterator[_Page]:
        """Pages of the objects in a folder with their sizes, and of the folders in it, by their names there."""
        prefix = f"{self._key(folder)}/" if folder else self._prefix
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=prefix, PaginationConfig={"PageSize": _PAGE}, **more
        )
        with self._explained(folder):
            for page in pages:
                objects = {c["Key"].removeprefix(prefix): c["Size"] for c in page.get("Contents", ())}
                folders = [p["Prefix"].removeprefix(prefix).rstrip("/") for p in page.get("CommonPrefixes", ())]
                yield {name: size for name, size in objects.items() if name}, folders

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        """Turn errors of the store into errors for people; a missing object becomes FileNotFoundError."""
        try:
            yield
        except ClientError as error:
            if _code(error) in _ABSENT:
                raise FileNotFoundError(name) from error
            where, said = self.locate(name), error.response.get("Error", {}).get("Message") or error
            if _code(error) in (*_LATER, *_TOGETHER):
                raise StoreUnreachable(f"{where}: the store refuses for now: {said}", fix="try again later") from error
            raise StoreError(
                f"{where}: the store refuses: {_code(error)}: {said}",
                fix=f"check that the bucket {self._bucket} is there, who may use it, and [s3] in tidemill.toml",
            ) from error
        except BotoCoreError as error:
            raise StoreUnreachable(
                f"{self.locate(name)}: no answer: {error}", fix="check [s3] endpoint, and that the store runs"
            ) from error


def _retries(error: ClientError | BotoCoreError) -> int:
    """How often the client tried again before it gave up."""
    if isinstance(error, BotoCoreError):
        return 0
    return int(error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0))


def _code(error: ClientError | BotoCoreError) -> str:
    """The store's code for an error; empty when the store did not answer."""
    if isinstance(error, BotoCoreError):
        return ""
    return str(error.response.get("Error", {}).get("Code", ""))
