"""What the exit code of every `tidemill` command means: the only table of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended. Errors carry theirs as `TidemillError.exit_code`."""

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


MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.DONE: "done; with --until-caught-up also when there was nothing left to do",
    ExitCode.DEFECT: "unexpected: a defect of Tidemill or of the machine (TIDEMILL_DEBUG=1 shows where)",
    ExitCode.USAGE: "the command was typed wrong",
    ExitCode.BUSY: "busy or fenced: another run holds the batch",
    ExitCode.BLOCKED: "the audit blocked the batch; nothing was published",
    ExitCode.WRONG: "wrong input, or the log or the ledger lost something; it needs a person",
    ExitCode.RETRY: "try again later: Spark, the storage or a write failed",
    ExitCode.NOTHING_TO_DO: "nothing to do",
    ExitCode.DIFFERENT: "the result is not what a recomputation from the log gives",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
}


def exit_code_help() -> str:
    """The table as it is printed at the end of the help page."""
    return "\n".join([" Exit codes", *(f"   {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items())])
