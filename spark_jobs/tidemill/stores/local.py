"""Objects in a folder on this machine."""

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

    An object is written to a temporary file, synced, and linked to its name. So exactly one of several processes takes
    a name, and a killed writer leaves nothing under it. Temporary files of killed writers are removed by a later write
    once they are an hour old.
    """

    def __init__(self, root: str | Path, *, clock: Callable[[], datetime] = _now) -> None:
        self._root = Path(root).expanduser().absolute()
        self._clock = clock

    def list(self, folder: str, after: str = "") -> Sequence[str]:
        """The names of the objects and folders directly in `folder`, all at once; empty if it does not exist."""
        del after
        path = self._root / folder
        with _explained(path):
            try:
                return os.listdir(path)
            except FileNotFoundError:
                return []

    def read(self, name: str) -> bytes:
        """The whole object; FileNotFoundError if it does not exist."""
        path = self._root / name
        with _explained(path):
            try:
                return path.read_bytes()
            except NotADirectoryError as error:
                raise FileNotFoundError(name) from error

    def tail(self, name: str, length: int) -> Tail:
        """The last `length` bytes of an object; FileNotFoundError if it does not exist."""
        path = self._root / name
        with _explained(path), path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - length))
            return Tail(data=file.read(), size=size)

    def sizes(self, folder: str) -> dict[str, int]:
        """The size in bytes of each object directly in `folder`."""
        path = self._root / folder
        with _explained(path):
            found: dict[str, int] = {}
            for name in self.list(folder):
                with suppress(FileNotFoundError):
                    found[name] = (path / name).stat().st_size
            return found

    def check_writer(self) -> None:
        """Do nothing: a file system refuses a name that is taken."""

    def put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        """Make the object durable under a free name; False if the name is taken."""
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
        """Put a small object in place of any earlier one; a loss of power may lose it."""
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
        """The object and its age. A new file shows the present time of the file system's own clock."""
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
        """Remove an object, if it exists."""
        path = self._root / name
        with _explained(path):
            path.unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Remove a folder with everything in it, if it exists."""
        path = self._root / folder
        with _explained(path):
            if path.is_dir():
                shutil.rmtree(path)

    def locate(self, name: str) -> str:
        """The path of an object."""
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
    """Create a folder and its parents so that they survive a loss of power."""
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
    """Turn errors of the system into errors for people; FileNotFoundError stays as it is."""
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
        # The system's error names a temporary file; users know only the object's name.
        refused = refusal(f"cannot use {path}", OSError(error.errno, error.strerror))
        raise refused or StoreError(
            f"cannot use {path}: {error.strerror or error}",
            fix="check that the path is a folder, its permissions, and the space left",
        ) from error
