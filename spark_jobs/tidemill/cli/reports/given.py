"""Contracts that commands get on standard input, which they know as `-`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tidemill.core.errors import InputError, TidemillError

STANDARD_INPUT = Path("-")
_NAME = re.compile(r"[\w-]{1,100}")


@contextmanager
def given(places: Sequence[Path]) -> Iterator[list[Path]]:
    """The same places, with a file in a folder of its own for standard input. All of them exist.

    The file is called like the only schema object that it has, because contracts are known by their files.

    Raises:
        InputError: a place does not exist, or standard input is named twice.
    """
    if places.count(STANDARD_INPUT) > 1:
        raise InputError("standard input (-) can be read only once", fix="name a file")
    for place in places:
        if place != STANDARD_INPUT and not place.exists():
            raise InputError(f"{place}: there is no such file or folder", fix="name contract files, or their folder")
    if STANDARD_INPUT not in places:
        yield list(places)
        return
    with TemporaryDirectory(prefix="tidemill-stdin-") as folder:
        read = _written(Path(folder), sys.stdin.buffer.read())
        yield [read if place == STANDARD_INPUT else place for place in places]


@contextmanager
def given_file(name: str) -> Iterator[Path]:
    """The same file; for `-` one with the bytes of standard input, which messages call `-`."""
    if name != str(STANDARD_INPUT):
        yield Path(name)
        return
    with TemporaryDirectory(prefix="tidemill-stdin-") as folder:
        path = Path(folder) / "standard input"
        path.write_bytes(sys.stdin.buffer.read())
        try:
            yield path
        except TidemillError as error:
            error.message = error.message.replace(str(path), name)
            error.fix = error.fix.replace(str(path), name)
            raise


def _written(folder: Path, data: bytes) -> Path:
    from tidemill.contracts.compile import objects_of
    from tidemill.contracts.document import read
    from tidemill.contracts.files import SUFFIX
    from tidemill.contracts.findings import Findings

    path = folder / f"stdin{SUFFIX}"
    path.write_bytes(data)
    root = read(path, Findings(str(path)))
    names = [schema.text("name") for schema in objects_of(root)] if root is not None else []
    return path.rename(folder / f"{names[0]}{SUFFIX}") if len(names) == 1 and _NAME.fullmatch(names[0]) else path


def shown_name(file: str, read: Sequence[Path], places: Sequence[Path]) -> str:
    """The name of a file in reports: `-` for standard input."""
    named = {str(path): str(place) for path, place in zip(read, places, strict=True)}
    return named.get(file, file)
