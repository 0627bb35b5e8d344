"""One seed: records arrive, workers come and are killed, the weather changes, and in the end one run is left alone."""

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
from chaos.weather import Weather
from chaos.workers import (
    KINDS,
    LAST,
    PASSING,
    REBUILD,
    RENAME,
    WITH_OWN_SPARK,
    Fate,
    Kind,
    Now,
    draw_fate,
    draw_kind,
)
from chaos.world import PIPELINE, WORDINGS, World, make_world
from tidemill.core.exit_code import ExitCode
from tidemill.core.protocol.failpoints import boundaries_beside, boundaries_of
from tidemill.ledger.ledger import Ledger

AT_ONCE = 3
"""Workers that are alive at the same time."""

STEPS = 10
LONGEST = 180.0
"""Seconds of a seed until it must have had its kills, and of its last run."""

OWN_SPARK, SPARK_WRITES, FROM_NOTHING = (0,), (2,), (3,)
"""Of four seeds, those in which one worker starts a Spark of its own, those in which some write with Spark, and those
in which already the first batch meets everything; in others there is a published batch before the weather changes."""

OTHER_KINDS = (1, 4)
"""Of five seeds, those with tables of sessions, of firings and of totals beside the windows."""

WINDOWS_ALONE = 3
"""Of so many seeds, one has no table of rows, so that batches need no Spark, or only its workers."""


@dataclass(kw_only=True)
class Life:
    """A worker that was started, `since` a time in seconds since 1970, under a name and a wording of the pipeline.

    By then the lake knew so many `renames`, and the name that it gave to the pipeline was `known`, or another.
    """

    kind: Kind
    fate: Fate
    folder: Path
    started: float
    since: float
    said: Path
    pending: dict[float, str]
    renames: int
    known: bool


@dataclass(kw_only=True)
class Outcome:
    """What came of a seed. `ends` counts how its workers ended, `refused` those that had to be, by the error's name."""

    seed: int
    folder: Path
    kills: int = 0
    fenced: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
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
        self._weather = Weather(world, Random(f"{seed} weather"))
        self._said = world.folder / "said"
        self._said.mkdir()

    def begin(self) -> None:
        """A first batch that nobody harms."""
        self._producer.step()
        self._start(KINDS[0], Fate(), Random(f"{self._seed} begin"))
        self._wait(LONGEST)

    def blow(self, kills: int) -> None:
        """Until there were so many kills, and all records are appended; then whoever is left is killed, all at once."""
        random, next_step = Random(f"{self._seed} pace"), 0.0
        end = time.monotonic() + LONGEST
        while (self.outcome.kills < kills or self._producer.left) and time.monotonic() < end:
            now = time.monotonic()
            self._weather.pass_by(now)
            if self._producer.left and now >= next_step:
                self._step()
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
        self._weather.clear()
        while self._producer.left:
            self._producer.step()
        random = Random(f"{self._seed} end")
        for kind in (random.choice([kind for kind in KINDS if kind.amends]), REBUILD, *LAST):
            # What was to be built anew goes on in the wording that began it.
            for wording in WORDINGS if kind is REBUILD else (None,):
                view = self._ledger.view()
                if kind is REBUILD and view.superseded is None:
                    continue
                self._weather.wording = wording or self._weather.fitting(view)
                self._start(kind, Fate(), random)
                self._wait(LONGEST)
        if self.outcome.ends[f"{LAST[-1].name}: {ExitCode.DONE.name}"] != 1:
            self.outcome.judgement.wrong.append("the last run did not catch up")

    def _step(self) -> None:
        """The last records are of every partition."""
        if self._producer.left == 1:
            self._weather.clear()
        self._producer.step(self._weather.hidden)

    @property
    def _ledger(self) -> Ledger:
        """That of the generation which is published now."""
        return self._world.load().ledger(PIPELINE)

    def _start_next(self) -> None:
        self._started += 1
        # By its number, so that how long a worker lives does not change what the next one is.
        random = Random(f"{self._seed} life {self._started}")
        own = self._started == 2 and self._seed % 4 in OWN_SPARK
        kind = WITH_OWN_SPARK if own else draw_kind(random, self._weather.kinds)
        last = self._ledger.view().last_batch_id
        # Some boundaries are only met by what goes back or tidies.
        places = self._boundaries if kind.name.startswith("run") else [*self._boundaries, *self._beside]
        if kind.name == RENAME.name:
            places = [place for place in self._beside if place.name == "renamed"]
        self._start(kind, draw_fate(random, places, last_batch=last, slow=kind.spark), random)

    def _start(self, kind: Kind, fate: Fate, random: Random) -> None:
        said = self._said / f"{len(list(self._said.iterdir())):03d}"
        said.touch()
        folder = self._world.own if kind.spark else self._free_seat()
        weather, names = self._weather, self._weather.names
        name = names.renamed.get(PIPELINE, PIPELINE)
        # Who was not told of a rename comes with the name of before.
        told = name if fate == Fate() or random.random() < TOLD else PIPELINE
        self._world.declare(folder, told, weather.wording)
        now = Now(self._ledger.view().position, name=told, wording=weather.wording, hidden=weather.missing)
        place = self._world.guest_of(folder) if kind.stranger else folder
        arguments = kind.arguments(place, random, now)
        number = self._crew.start(kind, arguments, fate.environ(str(self._pause_of(said))), said)
        self._alive[number] = Life(
            kind=kind,
            fate=fate,
            folder=folder,
            started=time.monotonic(),
            since=time.time(),
            said=said,
            pending=dict(fate.signals),
            renames=names.count,
            known=told == name,
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
        errors = [str(f.get("error")) for f in _failures(said)]
        # What has no batches tells people alone.
        unknown_name = life.kind.name == RENAME.name or "was renamed to" in said
        error = errors[-1] if errors else "ConfigError" if unknown_name and code else ""
        outcome.fenced += "Fenced" in errors
        outcome.ends[f"{life.kind.name}: {_name(code)}"] += 1
        refused = code > 0 and error in self._refusals(life)
        outcome.refused[error] += refused
        passing = code in fate.codes or (code in PASSING and not life.kind.stranger)
        trace = "Traceback (most recent call last)" in said and "upkeep" not in fate.failpoint
        if not (killed or refused or passing) or trace:
            outcome.judgement.wrong.append(f"{life.kind.name} ({fate}) ended with {code}: {_end_of(life.said)}")

    def _refusals(self, life: Life) -> set[str]:
        """The errors by which a worker may be refused, after all that happened in its life."""
        weather, found = self._weather, set[str]()
        if life.kind.stranger:
            # It looks for its topics first.
            return {"ForeignTable", *(["UnknownTopic"] if weather.may_have_hidden(life.since) else [])}
        if life.kind.amends:
            found |= {"AmendmentError", "BackfillOpen", "NothingRead"}
        if weather.may_have_hidden(life.since):
            found |= {"OffsetsLost", "UnknownTopic", "EngineError"}
        if weather.changes:
            found |= {"Incompatible", "BackfillOpen"}
        if not life.known or weather.names.count > life.renames:
            found |= {"ConfigError"}
        return found


TOLD = 0.9
"""How likely it is that somebody knows of a rename."""


def run_seed(seed: int, crew: Crew, folder: Path, *, remotes: Sequence[str], kills: int) -> Outcome:
    """A seed, in a folder of its own in `folder`, and what the oracle says of it."""
    started = time.monotonic()
    trigger = "on_update" if seed % 2 else "on_close"
    writes, rows = seed % 4 in SPARK_WRITES, seed % WINDOWS_ALONE > 0
    place = folder / f"seed-{seed}"
    kinds = seed % 5 in OTHER_KINDS
    world = make_world(place, remotes, trigger=trigger, spark_writes=writes, rows=rows, kinds=kinds, seed=seed)
    storm = Storm(seed, world, crew)
    if seed % 4 not in FROM_NOTHING:
        storm.begin()
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
