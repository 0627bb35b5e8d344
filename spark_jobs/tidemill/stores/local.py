"""Objects in a folder of this machine."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.errors import StoreError
from tidemill.stores.interface import Aged, Tail
from tidemill.stores.refusals import refusal

_INCOMING = ".incoming"
_ABANDONED_AFTER = timedelta(hours=1)


def _now() -> datetime:
    return datetime.now(UTC)


class LocalStore:
    """A `Store` in a folder of a file system with hard links.

    An object is written beside, synced, and linked to its name: a name is taken by exactly one of
    several processes, and a killed writer leaves nothing under it. What killed writers leave aside is
    removed by a later write once it is an hour old.
    """

    def __init__(self, root: str | Path, *, clock: Callable[[], datetime] = _now) -> None:
        self._root = Path(root).expanduser().absolute()
        self._clock = clock

    def list(self, folder: str) -> Sequence[str]:
        """See `Store.list`."""
        path = self._root / folder
        with _explained(path):
            try:
                return os.listdir(path)
            except FileNotFoundError:
                return []

    def read(self, name: str) -> bytes:
        """See `Store.read`."""
        path = self._root / name
        with _explained(path):
            try:
                return path.read_bytes()
            except NotADirectoryError as error:
                raise FileNotFoundError(name) from error

    def tail(self, name: str, length: int) -> Tail:
        """See `Store.tail`."""
        path = self._root / name
        with _explained(path), path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - length))
            return Tail(data=file.read(), size=size)

    def sizes(self, folder: str) -> dict[str, int]:
        """See `Store.sizes`."""
        path = self._root / folder
        with _explained(path):
            found: dict[str, int] = {}
            for name in self.list(folder):
                with suppress(FileNotFoundError):
                    found[name] = (path / name).stat().st_size
            return found

    def check_writer(self) -> None:
        """See `Store.check_writer`: a file system refuses a name that is taken."""

    def put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        """See `Store.put_if_absent`."""
        path = self._root / name
        with _explained(path):
            self._sweep()
            incoming = self._write_aside(data)
            try:
                _make_folder(path.parent)
                os.link(incoming, path)
            except FileExistsError:
                return False
            except FileNotFoundError as error:
                raise StoreError(f"{path} was not written: its folder was removed meanwhile") from error
            finally:
                incoming.unlink(missing_ok=True)
            _sync_folder(path.parent)
            return True

    def replace(self, name: str, data: bytes) -> None:
        """See `Store.replace`."""
        path = self._root / name
        with _explained(path):
            self._sweep()
            incoming = self._root / _INCOMING / f"{os.getpid()}-{uuid.uuid4().hex}"
            incoming.parent.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                incoming.write_bytes(data)
                incoming.replace(path)
            finally:
                incoming.unlink(missing_ok=True)

    def aged(self, name: str) -> Aged:
        """See `Store.aged`: a file that is written now bears the clock of the file system, wherever that is kept."""
        path = self._root / name
        with _explained(path):
            with path.open("rb") as file:
                data, written = file.read(), os.fstat(file.fileno()).st_mtime
            incoming = self._root / _INCOMING / f"{os.getpid()}-{uuid.uuid4().hex}"
            incoming.parent.mkdir(parents=True, exist_ok=True)
            try:
                incoming.write_bytes(b"now")
                return Aged(data=data, age=timedelta(seconds=incoming.stat().st_mtime - written))
            finally:
                incoming.unlink(missing_ok=True)

    def delete(self, name: str) -> None:
        """See `Store.delete`."""
        path = self._root / name
        with _explained(path):
            path.unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """See `Store.delete_folder`."""
        path = self._root / folder
        with _explained(path):
            if path.is_dir():
                shutil.rmtree(path)

    def locate(self, name: str) -> str:
        """See `Store.locate`."""
        return str(self._root / name)

    def _write_aside(self, data: bytes | pa.Buffer) -> Path:
        folder = self._root / _INCOMING
        _make_folder(folder)
        incoming = folder / f"{os.getpid()}-{uuid.uuid4().hex}"
        try:
            with incoming.open("xb") as file:
                file.write(memoryview(data))
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            incoming.unlink(missing_ok=True)
            raise
        return incoming

    def _sweep(self) -> None:
        oldest = (self._clock() - _ABANDONED_AFTER).timestamp()
        for name in self.list(_INCOMING):
            path = self._root / _INCOMING / name
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()


def _make_folder(path: Path) -> None:
    """Create a folder and those above it so that they survive a loss of power."""
    if path.is_dir():
        return
    _make_folder(path.parent)
    path.mkdir(exist_ok=True)
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what the system refuses into an error for people; only a missing object stays what it is."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP, errno.EXDEV, errno.EMLINK):
            raise StoreError(
                f"cannot use {path}: {error.strerror or error}",
                fix="keep the log or lake on one file system with hard links",
            ) from error
        # The system names a temporary file; a user knows the other.
        refused = refusal(f"cannot use {path}", OSError(error.errno, error.strerror))
        raise refused or StoreError(
            f"cannot use {path}: {error.strerror or error}",
            fix="check that the path is a folder, its permissions, and the space left",
        ) from error
