"""What a refusal of the storage means for a user: wait or make room, or correct something.

Python, delta-rs, Arrow and Spark word the system's errors differently, but all give the system's number or words.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass

from tidemill.core.errors import StoreError, StoreUnreachable, TidemillError


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Numbers of system errors, and what to do. If `passing`, the same work may succeed later without a correction."""

    numbers: tuple[int, ...]
    fix: str
    passing: bool = False


_REFUSALS = (
    _Refusal((errno.ENOSPC, errno.EDQUOT), "make room, then run it again: nothing was lost", passing=True),
    _Refusal((errno.EIO, errno.ESTALE, errno.ETIMEDOUT), "look at the disk, then run it again", passing=True),
    _Refusal((errno.EMFILE, errno.ENFILE), "allow more open files (ulimit -n), then run it again", passing=True),
    _Refusal((errno.EROFS,), "mount it so that it can be written to, or name another place in tidemill.toml"),
    _Refusal((errno.EACCES, errno.EPERM), "give the user who runs this the right to read and write there"),
    _Refusal((errno.ENOTDIR, errno.EISDIR), "a file is where a folder must be, or a folder where a file: move it away"),
    _Refusal((errno.ENAMETOOLONG, errno.ELOOP), "name a shorter path in tidemill.toml, without links in a circle"),
)
_NUMBER = re.compile(r"\(os error (\d+)\)|\[Errno (\d+)\]|errno: (\d+)")
_PATH = re.compile(
    r"(?:file|path|at|object|open|write to|unable to \w+(?: \w+)?)?:? ?[\"']?((?:file://)?/[^\s\"',:)]+)"
)
_NO_FOLDER = re.compile(r'Path does not exist: "([^"]+)"')
_LONGEST = 200


def refusal(where: str, error: BaseException) -> TidemillError | None:
    """The error for a user if the system refused something; None for any other error.

    `where` says what was done. The error is retryable only if the same work may succeed without a correction.
    """
    number = _number_of(error)
    for known in _REFUSALS:
        if number in known.numbers:
            message = f"{where}: {os.strerror(number)}{_place_of(error)}"
            return StoreUnreachable(message, fix=known.fix) if known.passing else StoreError(message, fix=known.fix)
    return None


def _number_of(error: BaseException) -> int:
    if isinstance(error, OSError) and error.errno:
        return error.errno
    text = str(error)
    # If a file is in the place of a table's folder, delta-rs looks for a folder and says that nothing exists.
    if (missing := _NO_FOLDER.search(text)) and os.path.isfile(missing[1].rstrip("/")):
        return errno.ENOTDIR
    if match := _NUMBER.search(text):
        return int(next(group for group in match.groups() if group))
    # Java and Arrow leave the number out.
    return next((n for known in _REFUSALS for n in known.numbers if os.strerror(n) in text), 0)


def _place_of(error: BaseException) -> str:
    named = error.filename if isinstance(error, OSError) else None
    if not named and (match := _PATH.search(str(error))):
        named = match[1]
    return f": {str(named)[:_LONGEST]}" if named else ""
