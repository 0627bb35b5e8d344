"""What the exit code of every `tidemill` command means, for people."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.core.exit_code import ExitCode

MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.DONE: "done; with --until-caught-up also when there was nothing left to do",
    ExitCode.DEFECT: "unexpected: a defect of Tidemill or of the machine (TIDEMILL_DEBUG=1 shows where)",
    ExitCode.USAGE: "the command was typed wrong",
    ExitCode.BUSY: "busy or fenced: another run holds the batch",
    ExitCode.BLOCKED: "the audit blocked the batch; nothing was published",
    ExitCode.WRONG: "wrong input, or the log or the ledger lost something; it needs a person",
    ExitCode.RETRY: "try again later: Spark, the storage or a write failed",
    ExitCode.NOTHING_TO_DO: "nothing to do",
    ExitCode.DIFFERENT: "tables are not what a recomputation from the log gives, or a test of the project failed",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
}


def exit_code_help() -> str:
    """The table as it is printed at the end of the help page."""
    return "\n".join([" Exit codes", *(f"   {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items())])
