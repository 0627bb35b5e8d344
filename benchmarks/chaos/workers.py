"""What runs in a seed, and what happens to it: the one place where a new kind of worker is added.

A kind is a command line of Python. The fate of a life - where it is killed, frozen or fails - is drawn apart from it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from chaos.world import OTHER_NAME, PIPELINE, STRANGER, TAKEOVER_AFTER
from tidemill.core.exit_code import ExitCode
from tidemill.core.plan.position import Position
from tidemill.core.protocol.failpoints import VARIABLE, Boundary


@dataclass(frozen=True, slots=True)
class Now:
    """What a command is made of: where the pipeline stands, what it is called and worded like, what is hidden."""

    position: Position
    name: str = PIPELINE
    wording: str = "plain"
    hidden: Sequence[str] = ()


Words = Callable[[Random, Now], Sequence[object]]

PASSING = frozenset({ExitCode.DONE, ExitCode.NOTHING_TO_DO, ExitCode.BUSY})
"""How a worker may end that nobody harmed."""

EXITED = 70
"""How the failpoint `exit` ends a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of worker: a Python module and its arguments. It is drawn as often as its `weight` says.

    A `spark` worker starts a Spark of its own, as a plain command does; all others are forked, and clients of a server.
    One that `amends` may be refused: the ledger says whether it fits. A `stranger` is of another project, and refused.
    """

    name: str
    module: str
    words: Words
    weight: int
    spark: bool = False
    amends: bool = False
    stranger: bool = False
    json: bool = True

    def arguments(self, folder: Path, random: Random, now: Now) -> list[str]:
        """The command line in a project's folder."""
        return ["--project", str(folder), *map(str, self.words(random, now)), *(["--json"] if self.json else [])]


def _command(name: str, weight: int, words: Words, *, amends: bool = True) -> Kind:
    """A kind of `tidemill` in its project's folder."""
    return Kind(name=name, module="tidemill.cli.main", words=words, weight=weight, amends=amends)


def _run(random: Random, now: Now) -> Sequence[object]:
    return ("run", now.name, "--until-caught-up", "--limit", random.randint(5, 40))


def _from_now(random: Random, now: Now) -> Sequence[object]:
    return (*_run(random, now), "--from-now", "--by", "the weather", "--why", now.wording)


def _backfill(random: Random, now: Now) -> Sequence[object]:
    """Some offsets of one partition, in batches of any size; of the others, all."""
    topics = sorted(now.position.topics.items())
    known = [(t, p, end) for t, at in topics for p, end in sorted(at.offsets.items()) if end]
    topic, partition, end = random.choice(known) if known else ("shop", 0, 1)
    since = random.randrange(end)
    places = ("--from-offsets", f"{topic}-{partition}:{since}", "--to-offsets", f"{topic}-{partition}:{end}")
    return ("backfill", now.name, *places, "--batch-records", random.randint(5, 200))


def _rewind(random: Random, now: Now) -> Sequence[object]:
    return ("rewind", now.name, "--to", max(now.position.batch_id - random.randint(1, 3), 0))


def _gone(_: Random, now: Now) -> Sequence[object]:
    return ("gone", now.name, *(now.hidden or ("web-0",)), "--by", "the weather")


def _rename(_: Random, now: Now) -> Sequence[object]:
    return ("rename", now.name, OTHER_NAME if now.name == PIPELINE else PIPELINE)


KINDS = (
    _command("run", 22, _run, amends=False),
    _command("backfill", 10, _backfill),
    _command("backfill --resume", 4, lambda _, n: ("backfill", n.name, "--resume")),
    _command("backfill --cancel", 2, lambda _, n: ("backfill", n.name, "--cancel")),
    _command("late admit", 6, lambda _, n: ("late", "admit", n.name)),
    _command("quarantine replay", 4, lambda _, n: ("quarantine", "replay", n.name)),
    _command("rewind", 4, _rewind),
    _command("rebuild", 1, lambda _, n: ("rebuild", n.name)),
    _command("maintain", 6, lambda _, n: ("maintain", n.name, "--keep", "1 second"), amends=False),
)

GONE = _command("gone", 0, _gone)
FROM_NOW = _command("run --from-now", 0, _from_now, amends=False)
RENAME = replace(_command("rename", 0, _rename, amends=False), json=False)
ANOTHER = replace(
    _command("a run of another project", 0, lambda random, n: _run(random, replace(n, name=STRANGER)), amends=False),
    stranger=True,
)
"""What the weather brings: it says how often."""

WITH_OWN_SPARK = replace(_command("run with its own Spark", 0, _run, amends=False), spark=True)

REBUILD = _command("the last rebuild", 0, lambda _, n: ("rebuild", n.name))
"""What completes a rebuild that was killed once its old generation had ended: nothing else can go on then."""

LAST = (
    _command("the last backfill", 0, lambda _, n: ("backfill", n.name, "--resume")),
    _command(
        "the last run", 0, lambda _, n: ("run", n.name, "--until-caught-up", "--drain", "--limit", 40), amends=False
    ),
)
"""What nobody harms, one after the other."""


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


def draw_kind(random: Random, more: Sequence[Kind] = ()) -> Kind:
    """One of KINDS, or of those that the weather brings."""
    kinds = (*KINDS, *more)
    return random.choices(kinds, [kind.weight for kind in kinds])[0]


def draw_fate(random: Random, boundaries: Sequence[Boundary], *, last_batch: int = 0, slow: bool = False) -> Fate:
    """What happens to the next worker; one that is `slow` to start is met later.

    At a boundary it is met in its first batch, or in the one after that, counted from the last one that was planned.
    """
    writes = [b.name for b in boundaries if b.writes]
    place = f"{random.choice(('before', 'after'))}:{random.choice(boundaries).name}"
    place += random.choice(("", f"@{last_batch + 1}+"))
    later = 8.0 if slow else 0.0
    moment = later + random.uniform(0.1, 3.0)
    long = random.uniform(0.8, 3.0) * TAKEOVER_AFTER
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


FATES = (29, 31, 3, 6, 3, 12, 4, 12)
"""How often each is drawn, of 100."""


def python(kind: Kind, arguments: Sequence[str]) -> list[str]:
    """The command line of a worker that is started as a process of its own."""
    return [sys.executable, "-m", kind.module, *arguments]
