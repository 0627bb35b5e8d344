"""Named places where a process can be made to fail, for tests and demonstrations of recovery.

The environment variable TIDEMILL_FAILPOINT holds `NAME=ACTION`, `NAME@BATCH=ACTION` or `NAME@BATCH+=ACTION` (this batch
or a later one); ACTION is `raise`, `exit` or `kill` (SIGKILL to the own process). Unset, a failpoint costs one look-up
in a dictionary.
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
    place, at, batch = place.partition("@")
    if place != name or (at and not _is_meant(batch, batch_id)):
        return
    match action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(70)
        case _:
            raise Injected(f"failpoint {name} of batch {batch_id} was reached")


def _is_meant(batch: str, batch_id: int) -> bool:
    return batch_id >= int(batch[:-1]) if batch.endswith("+") else batch_id == int(batch)
