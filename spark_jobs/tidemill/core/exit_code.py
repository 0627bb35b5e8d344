"""The exit codes of every `tidemill` command: the only table of them."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended. Errors carry theirs as `TidemillError.exit_code`; `cli.exit_codes` says what each means."""

    DONE = 0
    DEFECT = 1
    USAGE = 2
    BUSY = 3
    BLOCKED = 4
    WRONG = 5
    RETRY = 6
    NOTHING_TO_DO = 7
    DIFFERENT = 8
    INTERRUPTED = 130
