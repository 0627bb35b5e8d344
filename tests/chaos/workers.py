"""What runs in a seed, and what happens to it: the one place where a new kind of worker is added.

A kind is a command line of Python. The fate of a life - where it is killed, frozen or fails - is drawn apart from it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from chaos.world import PIPELINE, TAKEOVER_AFTER
from tidemill.cli.exit_codes import ExitCode
from tidemill.core.failpoints import VARIABLE, Boundary

Arguments = Callable[[Path, Random], Sequence[str]]
"""Of a command, from the folder of its project."""

PASSING = frozenset({ExitCode.DONE, ExitCode.NOTHING_TO_DO, ExitCode.BUSY})
"""How a worker may end that nobody harmed."""

EXITED = 70
"""How the failpoint `exit` ends a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of worker: a Python module and its arguments. It is drawn as often as its `weight` says.

    A `spark` worker starts a Spark of its own, as a plain command does; all others are forked, and clients of a server.
    """

    name: str
    module: str
    arguments: Arguments
    weight: int
    spark: bool = False


def _tidemill(folder: object, *words: object) -> list[str]:
    return ["--project", str(folder), *map(str, words)]


KINDS = (
    Kind(
        name="run",
        module="tidemill.cli.main",
        arguments=lambda folder, random: _tidemill(
            folder, "run", PIPELINE, "--until-caught-up", "--json", "--limit", random.randint(5, 40)
        ),
        weight=16,
    ),
    Kind(
        name="fold",
        module="chaos.fold",
        arguments=lambda folder, random: [str(folder), PIPELINE, str(random.randint(1, 8))],
        weight=2,
    ),
)

WITH_OWN_SPARK = Kind(
    name="run with its own Spark",
    module="tidemill.cli.main",
    arguments=lambda folder, _: _tidemill(folder, "run", PIPELINE, "--until-caught-up", "--json", "--limit", 30),
    weight=0,
    spark=True,
)

LAST = Kind(
    name="the last run",
    module="tidemill.cli.main",
    arguments=lambda folder, _: _tidemill(
        folder, "run", PIPELINE, "--until-caught-up", "--drain", "--json", "--limit", 40
    ),
    weight=0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What happens to a worker. Moments are seconds after its start; `signals` are sent to it at theirs.

    `failpoint` goes into its environment, with PAUSE for a file that appears at `go_on_at`.
    """

    failpoint: str = ""
    signals: Mapping[float, str] = field(default_factory=dict)
    go_on_at: float | None = None
    codes: frozenset[int] = frozenset()

    def environ(self, pause: str) -> dict[str, str]:
        """What the worker finds in its environment beside the usual."""
        return {VARIABLE: self.failpoint.replace("PAUSE", pause)} if self.failpoint else {}


def draw_kind(random: Random) -> Kind:
    """One of KINDS."""
    return random.choices(KINDS, [kind.weight for kind in KINDS])[0]


def draw_fate(random: Random, boundaries: Sequence[Boundary], *, last_batch: int = 0, slow: bool = False) -> Fate:
    """What happens to the next worker; one that is `slow` to start is met later.

    At a boundary it is met in its first batch, or in the one after that, counted from the last one that was planned.
    """
    writes = [b.name for b in boundaries if b.writes]
    place = f"{random.choice(('before', 'after'))}:{random.choice(boundaries).name}"
    place += random.choice(("", f"@{last_batch + 1}+"))
    later = 8.0 if slow else 0.0
    moment = later + random.uniform(0.1, 3.0)
    long = random.uniform(0.8, 1.3) * TAKEOVER_AFTER
    match random.choices(("moment", "kill", "exit", "lose", "raise", "freeze", "pause", "none"), FATES)[0]:
        case "moment":
            return Fate(signals={moment: "SIGKILL"})
        case "kill":
            return Fate(failpoint=f"{place}=kill")
        case "exit":
            return Fate(failpoint=f"{place}=exit", codes=frozenset({EXITED}))
        case "lose":
            return Fate(failpoint=f"{random.choice(writes)}=lose", codes=frozenset({ExitCode.RETRY}))
        case "raise":
            return Fate(failpoint=f"{place}=raise", codes=frozenset({ExitCode.RETRY}))
        case "freeze":
            return Fate(signals={moment: "SIGSTOP", moment + long: "SIGCONT"})
        case "pause":
            return Fate(failpoint=f"{place}=pause:PAUSE", go_on_at=moment + long)
    return Fate()


FATES = (34, 36, 3, 6, 3, 5, 5, 8)
"""How often each is drawn, of 100."""


def python(kind: Kind, arguments: Sequence[str]) -> list[str]:
    """The command line of a worker that is started as a process of its own."""
    return [sys.executable, "-m", kind.module, *arguments]
