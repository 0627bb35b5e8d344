"""Loads one Python file of a project: within a bounded time, and so that whatever it raises is an error that names it.

The file runs in a thread of its own. The caller waits, can be interrupted, and goes on when the file does not return.
Not everything can be caught: `os._exit` ends the process, and a file that waits in foreign code keeps its thread.
"""

from __future__ import annotations

import contextvars
import ctypes
import importlib.util
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from datetime import timedelta
from importlib.machinery import SourceFileLoader
from pathlib import Path
from threading import Event, Thread
from types import CodeType, ModuleType
from zlib import crc32

from tidemill.core.errors import DeclarationError
from tidemill.core.pipeline import Pipeline
from tidemill.core.times import show_duration

TOLD_AFTER = timedelta(seconds=10)
"""How long a file may load before it is named as one that takes long."""

_logger = logging.getLogger(__name__)
_SHOWN_LINES = 8


def load_pipelines(path: Path, *, patience: timedelta, told_after: timedelta = TOLD_AFTER) -> tuple[Pipeline, ...]:
    """The pipelines among the names of a file. What it prints goes to standard error; its folder stays the caller's.

    Raises:
        DeclarationError: the file cannot be read or compiled, raises anything, leaves the process, or does not return
            within `patience`. The text begins with the file and, where one is known, the line.
    """
    _check_file(path)
    load = _Load(path)
    with _as_it_was():
        load.start()
        first = min(told_after, patience)
        if not load.done.wait(first.total_seconds()) and first < patience:
            _logger.warning("%s: still loading after %s", path, show_duration(first))
        if not load.done.wait((patience - first).total_seconds()):
            load.abandon()
            raise DeclarationError(
                f"{path}: not loaded after {show_duration(patience)}{load.place()}",
                fix="a file declares pipelines only, without waiting for anything; [project] load_timeout allows more",
            )
    if load.error is not None:
        raise _fault(path, load.error) from load.error
    return load.found


def _check_file(path: Path) -> None:
    try:
        if path.is_file():
            return
        found = "a link to nothing" if path.is_symlink() and not path.exists() else "no file"
    except OSError as error:
        raise _unreadable(path, error) from None
    raise DeclarationError(f"{path}: expected a Python file, found {found}", fix="remove it from the pipelines")


def _unreadable(path: Path, error: OSError) -> DeclarationError:
    return DeclarationError(f"{path}: cannot be read: {error.strerror}", fix="change its rights")


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Working directory and standard streams as they are now, whatever a file does to them."""
    streams, folder = (sys.stdin, sys.stdout, sys.stderr), _working_directory()
    try:
        # Standard output belongs to the command: a program may read JSON from it.
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        if folder is not None and folder != _working_directory():
            os.chdir(folder)


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


class _Abandoned(BaseException):
    """Ends the thread of a file that takes too long."""


class _Load(Thread):
    """One file being loaded. Once `done` is set there is either an `error`, or `found` is what it declares."""

    def __init__(self, path: Path) -> None:
        super().__init__(name=f"loading {path}", daemon=True)
        self.path, self.done = path, Event()
        self.found: tuple[Pipeline, ...] = ()
        self.error: BaseException | None = None
        self._context = contextvars.copy_context()

    def run(self) -> None:
        """Load the file; never raises."""
        try:
            self.found = self._context.run(_declared_in, self.path)
        # A file may raise anything, `SystemExit` too.
        except BaseException as error:
            self.error = error
        self.done.set()

    def abandon(self) -> None:
        """Ask the thread to end; one that waits outside of Python goes on waiting."""
        if self.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(_Abandoned))

    def place(self) -> str:
        """The line of the file that is being executed, for an error; empty when there is none."""
        frame = sys._current_frames().get(self.ident or 0)
        lines = [line for f, line in traceback.walk_stack(frame) if f.f_code.co_filename == str(self.path)]
        return f", waiting in line {lines[-1]}" if lines else ""


class _AsWritten(SourceFileLoader):
    """Compiles the file each time: Python's cache takes a file that changed twice in a second for the old one."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file as it is now."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _declared_in(path: Path) -> tuple[Pipeline, ...]:
    values = vars(_module(path)).values()
    return tuple(dict.fromkeys(value for value in values if isinstance(value, Pipeline)))


def _module(path: Path) -> ModuleType:
    name = f"tidemill_pipelines.{path.stem}_{crc32(str(path).encode(errors='surrogateescape')):08x}"
    loader = _AsWritten(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise DeclarationError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    # As for any import: data classes look their module up.
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def _fault(path: Path, error: BaseException) -> DeclarationError:
    where = str(path) if (line := _line(path, error)) is None else f"{path}:{line}"
    match error:
        case DeclarationError():
            return DeclarationError(f"{where}: {error.message}", fix=error.fix)
        case SystemExit():
            return DeclarationError(
                f"{where}: leaves the process (SystemExit: {_said(error) or 0}) while it is loaded",
                fix='put what shall run only as a program below `if __name__ == "__main__":`',
            )
        case ModuleNotFoundError():
            fix = "install the package, or add its folder to PYTHONPATH: files beside a pipeline are no modules"
            return DeclarationError(f"{where}: {type(error).__name__}: {_said(error)}", fix=fix)
        case OSError(filename=name) if name == str(path):
            return _unreadable(path, error)
        case _:
            said = _said(error)
            return DeclarationError(f"{where}: {type(error).__name__}{': ' if said else ''}{said}")


def _line(path: Path, error: BaseException) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = [line for f, line in traceback.walk_tb(error.__traceback__) if f.f_code.co_filename == str(path)]
    return lines[-1] if lines else None


def _said(error: BaseException) -> str:
    """The first lines of what it says. The text is the file's own, so it may fail, too."""
    said = ""
    with suppress(Exception):
        said = error.msg if isinstance(error, SyntaxError) else str(error)
    return "\n".join(said.strip().splitlines()[:_SHOWN_LINES])
