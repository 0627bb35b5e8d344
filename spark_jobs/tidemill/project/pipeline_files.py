"""Loads the Python files of a project within a time limit. What a file raises becomes an error that names the file.

Each file runs in a thread of its own. The caller waits, can be interrupted, and continues if a file does not return.
Not everything can be caught: `os._exit` ends the process, and a file that waits in native code keeps its thread.
"""

from __future__ import annotations

import contextvars
import ctypes
import importlib.util
import logging
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from datetime import timedelta
from importlib.machinery import SourceFileLoader
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from types import CodeType, ModuleType
from zlib import crc32

from tidemill.core.declare.pipeline import Pipeline
from tidemill.core.declare.places import FINISHED, lines_in
from tidemill.core.errors import DeclarationError
from tidemill.core.time.times import show_duration
from tidemill.project.pipeline_faults import fault

TOLD_AFTER = timedelta(seconds=10)
"""After this time, a file that is still loading is named in a warning."""

OTHERS = timedelta(seconds=5)
"""How long to wait for the other files once the wanted pipeline is found."""

Loaded = tuple[Pipeline, ...] | DeclarationError
"""The pipelines that a file declares, or the error that it caused."""

_logger = logging.getLogger(__name__)


def load_files(
    paths: Iterable[Path], *, patience: timedelta, wanted: str | None = None, told_after: timedelta = TOLD_AFTER
) -> Mapping[Path, Loaded]:
    """Load the files and return what each declares, in the order of `paths`, within `patience` for all together.

    Files are loaded one after the other. A slow file continues in the background, so that every file has started after
    half of the time. Once the pipeline `wanted` is found, the others get only `OTHERS` more, and the log names files
    that have not returned. What files print goes to standard error, and the working directory stays as it was.

    An error begins with the file and, if known, the line. Errors are: the file cannot be read or compiled, raises
    anything, exits the process, or does not return.
    """
    loads, time = [_Load(path) for path in paths], _Time(patience)
    with _as_it_was():
        for index, load in enumerate(loads):
            with _as_it_was():
                load.start()
                load.done.wait(time.turn(len(loads) - index))
            time.found(load, wanted)
        for load in loads:
            load.done.wait(min(time.left(), load.began + told_after.total_seconds() - monotonic()))
            time.found(load, wanted)
            if not load.done.is_set() and time.left() > 0:
                _logger.warning("%s: still loading after %s", load.path, show_duration(told_after))
        for load in loads:
            load.done.wait(time.left())
            time.found(load, wanted)
    return {load.path: load.abandoned(time) if load.result is None else load.result for load in loads}


class _Time:
    """The time left for all files together."""

    def __init__(self, patience: timedelta) -> None:
        self.patience, self.shortened = patience, False
        self._set(patience)

    def _set(self, patience: timedelta) -> None:
        seconds = patience.total_seconds()
        self._end, self._begun_by = monotonic() + seconds, monotonic() + seconds / 2

    def left(self) -> float:
        """Seconds until the time limit."""
        return max(0.0, self._end - monotonic())

    def turn(self, files: int) -> float:
        """Seconds to wait for the next file if this number of files has not started yet."""
        return max(0.0, self._begun_by - monotonic()) / files

    def found(self, load: _Load, wanted: str | None) -> None:
        """Shorten the time left if this file declares the wanted pipeline."""
        declared = load.result if isinstance(load.result, tuple) else ()
        if not self.shortened and any(p.name == wanted for p in declared):
            self.shortened = True
            if self.left() > OTHERS.total_seconds():
                self.patience = OTHERS
                self._set(OTHERS)


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Restore the working directory and the standard streams afterwards, whatever a file does to them."""
    streams, folder = (sys.stdin, sys.stdout, sys.stderr), _working_directory()
    try:
        # Standard output belongs to the command: programs may read JSON from it.
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
    """Loads one file. `result` is set before `done`."""

    def __init__(self, path: Path) -> None:
        super().__init__(name=f"loading {path}", daemon=True)
        self.path, self.done, self.began = path, Event(), 0.0
        self.result: Loaded | None = None
        self._context = contextvars.copy_context()

    def start(self) -> None:
        """Start to load the file."""
        self.began = monotonic()
        super().start()

    def run(self) -> None:
        """Load the file; never raises."""
        with suppress(_Abandoned):
            # A file may raise anything, even `SystemExit`, and formatting the error may take long.
            try:
                self.result = self._context.run(_declared_in, self.path)
            except BaseException as error:
                self.result = fault(self.path, error)
                self.result.__cause__ = error
        self.done.set()

    def abandoned(self, time: _Time) -> DeclarationError:
        """Ask the thread to end, and describe where it is. A thread that waits in native code keeps waiting."""
        place = self._place()
        if self.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(_Abandoned))
        error = DeclarationError(
            f"{self.path}: not loaded after {show_duration(time.patience)}{place}",
            fix="a file declares pipelines only, without waiting for anything; [project] load_timeout allows more",
        )
        if time.shortened:
            _logger.warning("%s; what it declares is not known", error.message)
        return error

    def _place(self) -> str:
        frame = sys._current_frames().get(self.ident or 0)
        lines = [line for f, line in traceback.walk_stack(frame) if f.f_code.co_filename == str(self.path)]
        return f", waiting in line {lines[-1]}" if lines else ""


class _AsWritten(SourceFileLoader):
    """Compiles the file each time: Python's cache misses a second change within the same second."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file as it is now."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _declared_in(path: Path) -> tuple[Pipeline, ...]:
    # Reading something that is not a regular file, such as a pipe, might never end.
    if not path.is_file():
        found = "a link to nothing" if path.is_symlink() and not path.exists() else "no file"
        raise DeclarationError(f"expected a Python file, found {found}", fix="remove it from the pipelines")
    made: list[Pipeline] = []
    FINISHED.set(made)
    values = vars(_module(path)).values()
    # A second pipeline under the same name of Python hides the first one.
    own = [pipeline for pipeline in made if lines_in(str(path), pipeline)]
    return tuple(dict.fromkeys([*own, *(value for value in values if isinstance(value, Pipeline))]))


def _module(path: Path) -> ModuleType:
    name = f"tidemill_pipelines.{path.stem}_{crc32(str(path).encode(errors='surrogateescape')):08x}"
    loader = _AsWritten(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise DeclarationError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    # A normal import does this too: data classes look their module up.
    sys.modules[name] = module
    loader.exec_module(module)
    return module
