"""A process that imports once what batches need, and forks the workers of a seed, which begin at once.

It does what Airflow's warm path does, with that path's own list of modules. It reads commands as lines of JSON and
answers in lines of JSON; when the commands end, it kills what is left of its children, and ends.

    {"start": 3, "module": "tidemill.cli.main", "arguments": ["run", ...], "environ": {...}, "said": "/tmp/.../3"}
    {"signal": 9, "to": 3}
    {"ended": 3, "status": -9}
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from importlib import import_module
from typing import Any, NoReturn

from pyspark.sql.connect.client import SparkConnectClient

from tidemill.core.repair.state_compaction import Folding
from tidemill.maintain import state_compaction
from tidemill.run import after_commit
from tidemill_airflow.scheduler.warm_path import warm

MODULES = (
    *(
        "tidemill.cli.main",
        "tidemill.cli.spark",
        "tidemill.cli.views.batch_lines",
        "tidemill.run.loop",
        "tidemill.run.sessions",
    ),
    *("tidemill.contracts.audit", "tidemill.log.file", "tidemill.ledger.ledger", "rich.console"),
)
"""What a worker imports beside Airflow's list; nothing of it starts a thread."""

OFTEN = 3
"""Upkeep comes after so many batches here, and keeps so few versions, that a seed has it many times."""
KEEP = 40


class Nursery:
    """The children, by number."""

    def __init__(self) -> None:
        self._children: dict[int, int] = {}

    def serve(self) -> None:
        """Obey until the commands end."""
        rest = b""
        while True:
            # Not through a buffer, in which a second line would lie unseen.
            if select.select([0], [], [], 0.02)[0]:
                read = os.read(0, 65536)
                if not read:
                    break
                *lines, rest = (rest + read).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))
            self._report()
        for pid in self._children.values():
            os.kill(pid, signal.SIGKILL)

    def _obey(self, command: dict[str, Any]) -> None:
        if "start" in command:
            pid = os.fork()
            if not pid:
                _become(command)
            self._children[command["start"]] = pid
        # Only a child that was not waited for: its number cannot be somebody else's yet.
        elif command["to"] in self._children:
            os.kill(self._children[command["to"]], command["signal"])

    def _report(self) -> None:
        for number, pid in list(self._children.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._children[number]
                print(json.dumps({"ended": number, "status": os.waitstatus_to_exitcode(status)}), flush=True)


def _become(command: dict[str, Any]) -> NoReturn:
    """Be the worker, in this forked process, and end as its Python would end: what it does then is part of it."""
    os.setsid()
    said = os.open(command["said"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), said, said)):
        os.dup2(file, number)
    os.environ.update(command["environ"])
    import_module(command["module"]).main(command["arguments"])
    sys.exit()


def main() -> None:
    """Import everything, say so, serve."""
    warm()
    for name in MODULES:
        import_module(name)
    # A session of a server takes seconds to begin; the workers of a seat have one after the other the same.
    SparkConnectClient.release_session = lambda _: None
    after_commit.EVERY, after_commit.KEEP_VERSIONS = OFTEN, KEEP
    state_compaction.FOLDING = Folding(group=OFTEN, overlap=1.0, groups=1)
    print(json.dumps({"ready": os.getpid()}), flush=True)
    Nursery().serve()


if __name__ == "__main__":
    main()
