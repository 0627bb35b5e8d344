"""One seed: records arrive, workers come and are killed, and in the end one run is left alone to catch up."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from chaos.crew import Crew
from chaos.oracle import Judgement, judge
from chaos.records import Producer
from chaos.workers import KINDS, LAST, PASSING, REBUILD, WITH_OWN_SPARK, Fate, Kind, draw_fate, draw_kind
from chaos.world import PIPELINE, World, make_world
from tidemill.cli.exit_codes import ExitCode
from tidemill.core.errors import AmendmentError, BackfillOpen, NothingRead
from tidemill.core.failpoints import boundaries_beside, boundaries_of
from tidemill.ledger.ledger import Ledger

AT_ONCE = 3
"""Workers that are alive at the same time."""

STEPS = 10
LONGEST = 120.0
"""Seconds of a seed until it must have had its kills, and of its last run."""

OWN_SPARK, SPARK_WRITES = (0,), (2,)
"""Of four seeds, those in which one worker starts a Spark of its own, and those in which some write with Spark."""


@dataclass(kw_only=True)
class Life:
    """A worker that was started."""

    kind: Kind
    fate: Fate
    folder: Path
    started: float
    said: Path
    pending: dict[float, str]


@dataclass(kw_only=True)
class Outcome:
    """What came of a seed. `ends` counts how its workers ended."""

    seed: int
    folder: Path
    kills: int = 0
    fenced: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    judgement: Judgement = field(default_factory=Judgement)
    seconds: float = 0.0


class Storm:
    """The workers of one seed. All that is left to chance is drawn from the seed; only time is not."""

    def __init__(self, seed: int, world: World, crew: Crew) -> None:
        self.outcome = Outcome(seed=seed, folder=world.folder)
        self._seed, self._world, self._crew = seed, world, crew
        self._alive: dict[int, Life] = {}
        self._started, self._next_start = 0, 0.0
        project = world.load()
        flow = project.pipeline(PIPELINE)
        self._boundaries, self._beside = boundaries_of(flow), boundaries_beside(flow)
        self._producer = Producer(world, Random(f"{seed} records"), steps=STEPS)
        self._said = world.folder / "said"
        self._said.mkdir()

    def blow(self, kills: int) -> None:
        """Until there were so many kills, and all records are appended; then whoever is left is killed, all at once."""
        random, next_step = Random(f"{self._seed} pace"), 0.0
        end = time.monotonic() + LONGEST
        while (self.outcome.kills < kills or self._producer.left) and time.monotonic() < end:
            now = time.monotonic()
            if self._producer.left and now >= next_step:
                self._producer.step()
                next_step = now + random.uniform(0.5, 2.0)
            if len(self._alive) < AT_ONCE and now >= self._next_start:
                self._start_next()
                self._next_start = now + random.uniform(0.0, 1.5)
            self._look(now)
            time.sleep(0.01)
        for number, life in self._alive.items():
            life.fate = replace(life.fate, signals={0.0: "SIGKILL"})
            self._crew.signal(number, "SIGKILL")
        self._wait(30)

    def settle(self) -> None:
        """What is left of the records, and what brings the pipeline to its end, which nobody harms."""
        while self._producer.left:
            self._producer.step()
        random = Random(f"{self._seed} end")
        for kind in (random.choice([kind for kind in KINDS if kind.amends]), REBUILD, *LAST):
            if kind is REBUILD and self._ledger.view().superseded is None:
                continue
            self._start(kind, Fate(), random)
            self._wait(LONGEST)
        if self.outcome.ends[f"{LAST[-1].name}: {ExitCode.DONE.name}"] != 1:
            self.outcome.judgement.wrong.append("the last run did not catch up")

    @property
    def _ledger(self) -> Ledger:
        """That of the generation which is published now."""
        return self._world.load().ledger(PIPELINE)

    def _start_next(self) -> None:
        self._started += 1
        # By its number, so that how long a worker lives does not change what the next one is.
        random = Random(f"{self._seed} life {self._started}")
        own = self._started == 2 and self._seed % 4 in OWN_SPARK
        kind = WITH_OWN_SPARK if own else draw_kind(random)
        last = self._ledger.view().last_batch_id
        # Some boundaries are only met by what goes back or tidies.
        places = self._boundaries if kind.name.startswith("run") else [*self._boundaries, *self._beside]
        self._start(kind, draw_fate(random, places, last_batch=last, slow=kind.spark), random)

    def _start(self, kind: Kind, fate: Fate, random: Random) -> None:
        said = self._said / f"{len(list(self._said.iterdir())):03d}"
        said.touch()
        folder = self._world.own if kind.spark else self._free_seat()
        arguments = kind.arguments(folder, random, self._ledger.view().position)
        environ = fate.environ(str(self._pause_of(said)))
        number = self._crew.start(kind, arguments, environ, said)
        self._alive[number] = Life(
            kind=kind, fate=fate, folder=folder, started=time.monotonic(), said=said, pending=dict(fate.signals)
        )

    def _free_seat(self) -> Path:
        taken = {life.folder for life in self._alive.values()}
        return next(seat for seat in self._world.seats if seat not in taken)

    def _pause_of(self, said: Path) -> Path:
        folder = self._world.folder / "pauses"
        folder.mkdir(exist_ok=True)
        return folder / said.name

    def _look(self, now: float) -> None:
        """Send the signals that are due, let go who was paused long enough, and notice who has ended."""
        for number, life in self._alive.items():
            age = now - life.started
            for moment in [m for m in life.pending if m <= age]:
                self._crew.signal(number, life.pending.pop(moment))
            if life.fate.go_on_at is not None and age >= life.fate.go_on_at:
                self._pause_of(life.said).touch()
        for number, code in self._crew.ended():
            self._note(self._alive.pop(number), code)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self._alive and time.monotonic() < end:
            self._look(time.monotonic())
            time.sleep(0.01)
        for number, life in self._alive.items():
            self._crew.signal(number, "SIGKILL")
            self.outcome.judgement.wrong.append(f"{life.kind.name} ({life.fate}) did not end: {_end_of(life.said)}")
        self._alive.clear()

    def _note(self, life: Life, code: int) -> None:
        """Count how a worker ended; an end that nobody asked for is a finding."""
        said, fate, outcome = life.said.read_text(errors="replace"), life.fate, self.outcome
        killed = code == -9 and ("SIGKILL" in fate.signals.values() or fate.failpoint.endswith("=kill"))
        outcome.kills += killed
        # Somebody takes over at once; who was only busy is not followed so soon.
        self._next_start = 0.0 if killed else self._next_start
        outcome.fenced += any(f.get("error") == "Fenced" for f in _failures(said))
        outcome.ends[f"{life.kind.name}: {_name(code)}"] += 1
        refused = life.kind.amends and [f.get("error") for f in _failures(said)][-1:] in REFUSALS
        trace = "Traceback (most recent call last)" in said and "upkeep" not in fate.failpoint
        if not (killed or refused or code in PASSING or code in fate.codes) or trace:
            outcome.judgement.wrong.append(f"{life.kind.name} ({fate}) ended with {code}: {_end_of(life.said)}")


REFUSALS = [[refusal.__name__] for refusal in (AmendmentError, BackfillOpen, NothingRead)]
"""How something that goes back may be refused; what the pipeline is in the middle of decides."""


def run_seed(seed: int, crew: Crew, folder: Path, *, remotes: Sequence[str], kills: int) -> Outcome:
    """A seed, in a folder of its own in `folder`, and what the oracle says of it."""
    started = time.monotonic()
    trigger = "on_update" if seed % 2 else "on_close"
    world = make_world(folder / f"seed-{seed}", remotes, trigger=trigger, spark_writes=seed % 4 in SPARK_WRITES)
    storm = Storm(seed, world, crew)
    storm.blow(kills)
    storm.settle()
    found = judge(world)
    found.wrong = storm.outcome.judgement.wrong + found.wrong
    storm.outcome.judgement = found
    storm.outcome.seconds = time.monotonic() - started
    return storm.outcome


def _failures(said: str) -> list[Mapping[str, object]]:
    lines = [line for line in said.splitlines() if line.startswith('{"event": "failed"')]
    return [json.loads(line) for line in lines if line.endswith("}")]


def _name(code: int) -> str:
    return {-9: "killed", 70: "exited"}.get(code) or (ExitCode(code).name if code in list(ExitCode) else str(code))


def _end_of(said: Path) -> str:
    return said.read_text(errors="replace")[-1500:]
