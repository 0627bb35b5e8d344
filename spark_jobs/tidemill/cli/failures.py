"""How a command fails: one block of text on standard error and an exit code, never a stack trace."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperGroup

from tidemill.cli.exit_codes import exit_code_help
from tidemill.core.errors import TidemillError
from tidemill.core.exit_code import ExitCode
from tidemill.stores.refusals import refusal

DEBUG = "TIDEMILL_DEBUG"
"""If this variable is set to anything, the stack trace is printed too."""

_STORING = ("deltalake", "pyarrow", "_internal")
"""Packages whose errors may mean that the storage refused something."""


class Commands(TyperGroup):
    """A group of commands that turns Tidemill's errors into exit codes."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except TidemillError as error:
            show_error(error)
            raise typer.Exit(error.exit_code) from error
        except OSError as error:
            self._refuse(ctx, error)
            raise
        except Exception as error:
            if type(error).__module__.partition(".")[0] in _STORING:
                self._refuse(ctx, error)
            raise
        except KeyboardInterrupt as error:
            print("\ninterrupted: what was committed stays; the same command goes on from there", file=sys.stderr)
            raise typer.Exit(ExitCode.INTERRUPTED) from error

    def _refuse(self, ctx: Any, error: Exception) -> None:
        """Exit as for a storage error if the storage caused it. Otherwise do nothing, and the error stays a defect."""
        refused = refusal(f"tidemill {ctx.invoked_subcommand}: the storage failed", error)
        if refused is not None:
            show_error(refused)
            raise typer.Exit(refused.exit_code) from error

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help page, with the exit codes at its end."""
        super().format_help(ctx, formatter)
        print(f"{exit_code_help()}\n")


def show_error(error: TidemillError) -> None:
    """Print what failed and what to do about it."""
    _block(error.message, error.fix)


def show_defect(error: Exception) -> None:
    """Print an unexpected error: its first lines, and how to see the rest."""
    first = "\n".join(str(error).strip().splitlines()[:8])
    _block(f"unexpected {type(error).__name__}: {first}", f"{DEBUG}=1 shows where; please report it with that")


def failed(error: TidemillError) -> Mapping[str, object]:
    """The error as JSON values, for programs."""
    return {
        "event": "failed",
        "error": type(error).__name__,
        "message": error.message,
        "fix": error.fix,
        "exit_code": int(error.exit_code),
        "retryable": error.retryable,
    }


def _block(message: str, fix: str) -> None:
    if os.environ.get(DEBUG):
        traceback.print_exc()
    bold, green, plain = ("\033[1;31m", "\033[32m", "\033[0m") if _colours() else ("", "", "")
    lines = [f"{bold}error:{plain} {message}"]
    if fix:
        lines.append(f"  {green}fix:{plain} {fix}")
    print("\n".join(lines), file=sys.stderr)


def _colours() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")
