"""What one check of `tidemill doctor` found."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tidemill.cli.failures import DEBUG
from tidemill.core.errors import TidemillError


class State(StrEnum):
    """Whether something works. With NOTE it works, but somebody should know about it."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of one check."""

    name: str
    state: State
    found: str
    fix: str = ""


def check(name: str, look: Callable[[], tuple[State, str, str]]) -> Checked:
    """The result of `look`, which returns state, findings and cure; an error of any kind is a problem."""
    try:
        state, found, fix = look()
    except TidemillError as error:
        return Checked(name=name, state=State.PROBLEM, found=error.message, fix=error.fix)
    # Whatever the error is, the other checks go on.
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        again = f"look at it, then run `tidemill doctor` again; {DEBUG}=1 shows all of it"
        if os.environ.get(DEBUG):
            first = str(error)
        return Checked(name=name, state=State.PROBLEM, found=f"{type(error).__name__}: {first}", fix=again)
    return Checked(name=name, state=state, found=found, fix=fix)
