"""Named places where a process can be made to fail, for tests and demonstrations of recovery.

The environment variable TIDEMILL_FAILPOINT holds `NAME=ACTION` or `NAME@BATCH=ACTION`; ACTION is `raise`, `exit` or
`kill` (SIGKILL to the own process). Unset, a failpoint costs one look-up in a dictionary.
"""

from __future__ import annotations

import os
import signal

from tidemill.core.errors import EngineError

VARIABLE = "TIDEMILL_FAILPOINT"


class Injected(EngineError):
    """A failure that was asked for."""


def reach(name: str, batch_id: int) -> None:
    """Fail here when the environment asks for it."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    place, _, action = wanted.partition("=")
    if place not in (name, f"{name}@{batch_id}"):
        return
    match action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(70)
        case _:
            raise Injected(f"failpoint {name} of batch {batch_id} was reached")
