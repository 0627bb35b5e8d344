"""Hides what native libraries print beside the errors they raise: Rust's panics, Java's stack traces.

They write to the file descriptor of standard error and bypass Python. Tidemill's own messages go directly to the
terminal.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

_PANIC = re.compile(r"thread '.*' .*panicked at |thread '.*' panicked at ")
_AFTER_PANIC = "note: "
_NOISE = re.compile(r'\{"ts":|\s+at [\w.$/]+\(|\s+\.\.\. \d+ more$|\s+Suppressed: ')
_LONGEST_PANIC = 200
_LAST = b"\0tidemill ends\n"


@contextmanager
def without_noise() -> Iterator[None]:
    """Filter such lines out of standard error meanwhile. Does nothing if standard error was replaced.

    Processes started meanwhile that live longer lose their standard error afterwards.
    """
    if sys.stderr is not sys.__stderr__ or sys.stderr is None or sys.stderr.fileno() != 2:
        yield
        return
    ours, saved = sys.stderr, os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    ended = Event()
    Thread(target=_pass_on, args=(reading, saved, ended), daemon=True, name="standard error").start()
    with os.fdopen(os.dup(saved), "w", buffering=1, encoding=ours.encoding, errors="backslashreplace") as direct:
        sys.stderr = direct
        try:
            yield
        finally:
            ours.flush()
            sys.stderr = ours
            os.write(2, _LAST)
            ended.wait(1)
            os.dup2(saved, 2)


def _pass_on(reading: int, to: int, ended: Event) -> None:
    def lines() -> Iterator[bytes]:
        with os.fdopen(reading, "rb") as stream:
            for line in stream:
                if line.endswith(_LAST):
                    ended.set()
                else:
                    yield line

    for line in meant_for_people(lines()):
        os.write(to, line)


def meant_for_people(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines without panics, stack traces and machine-readable records."""
    panic, blank = 0, False
    for line in lines:
        text = line.decode(errors="replace")
        if panic:
            panic = 0 if text.startswith(_AFTER_PANIC) else panic - 1
        elif _PANIC.match(text):
            panic, blank = _LONGEST_PANIC, False
        elif not text.strip():
            # Rust prints an empty line before a panic.
            blank = True
        elif not _NOISE.match(text):
            if blank:
                yield b"\n"
            blank = False
            yield line
