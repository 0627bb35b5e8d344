"""What happens around the workers of a seed: partitions hide and come back, the declaration gets another wording.

What a rename, `gone` and a decision do is up to workers, which are killed like all others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from random import Random

from chaos.recompute import Place
from chaos.workers import ANOTHER, FROM_NOW, GONE, RENAME, Kind
from chaos.world import TOPICS, WORDINGS, World
from tidemill.core.change.redefinition import redefined
from tidemill.core.errors import Incompatible
from tidemill.core.protocol.view import View
from tidemill.project.names import Names

FILES, SHOWN, TOPIC = "its files", "the partition", "the topic"
"""What hides: a log that lost files says so; one that does not show a partition, or a topic, misses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A partition that was away. It went between `leaves` and `left`, and came back between `comes` and `came`.

    Moments are times in seconds since 1970.
    """

    topic: str
    partition: int
    way: str
    leaves: float
    left: float
    comes: float = float("inf")
    came: float = float("inf")

    @property
    def place(self) -> Place:
        """Which partition."""
        return self.topic, self.partition

    def may_be_in(self, since: float, until: float) -> bool:
        """Whether it was away at some moment between these two, or may have been."""
        return self.leaves <= until and since <= self.came

    def covers(self, since: float, until: float) -> bool:
        """Whether it was away from the one to the other, for certain."""
        return self.left <= since and until <= self.comes


class Weather:
    """That of one seed. The declaration that is `wording` now reaches a project with its next worker."""

    def __init__(self, world: World, random: Random) -> None:
        self._world, self._random, self._flows = world, random, world.flows()
        self.wording, self.changes = "plain", 0
        self._absence: Absence | None = None
        self._until, self._next = 0.0, random.uniform(2, 6)
        self._began: float | None = None

    @property
    def hidden(self) -> list[Place]:
        """What must not be written to."""
        return [] if self._absence is None else [self._absence.place]

    @property
    def missing(self) -> Sequence[str]:
        """What the log does not show, as a command names it."""
        away = self._absence
        return [] if away is None or away.way == FILES else [f"{away.topic}-{away.partition}"]

    @property
    def names(self) -> Names:
        """What pipelines are called in the lake, and how often one was renamed: at one moment, for both may change."""
        return Names.read(self._world.load().generations.store)

    @property
    def kinds(self) -> list[Kind]:
        """What workers may do now beside the usual."""
        if not any((self._world.lake / "published").glob("*/_delta_log/*.json")):
            return []
        decide = replace(FROM_NOW, weight=14 if self.wording != "plain" else 3)
        return [*([replace(GONE, weight=25)] if self.missing else []), decide, _often(RENAME, 5), _often(ANOTHER, 6)]

    def pass_by(self, now: float) -> None:
        """Let happen what is due."""
        self._began = now if self._began is None else self._began
        age = now - self._began
        if self._absence is not None and age >= self._until:
            self.clear()
        if age < self._next:
            return
        self._next = age + self._random.uniform(1, 5)
        if self._random.random() < 0.4:
            self.wording = self._random.choice(list(WORDINGS))
            self.changes += 1
        elif self._absence is None:
            self._until = age + self._random.uniform(1, 8)
            self._hide(*self._random.choice([("web", 0, TOPIC), ("shop", 1, SHOWN), ("shop", 0, FILES)]))

    def clear(self) -> None:
        """Everything is there again, as it was."""
        if self._absence is None:
            return
        comes = _now()
        move(self._world, self._absence, back=True)
        away, self._absence = replace(self._absence, comes=comes, came=_now()), None
        with self._world.journal.open("a") as journal:
            journal.write(json.dumps(asdict(away)) + "\n")

    def may_have_hidden(self, since: float) -> bool:
        """Whether something was away since then."""
        away = [*absences(self._world), *([] if self._absence is None else [self._absence])]
        return any(each.may_be_in(since, _now()) for each in away)

    def fitting(self, view: View) -> str:
        """The wording by which the pipeline can go on: that of its open batch, or one that means what it means."""
        for wording, flow in self._flows.items():
            if view.open_batch is not None and view.open_batch.plan.logical_hash == flow.logical_hash:
                return wording
        for wording, flow in self._flows.items():
            with suppress(Incompatible):
                redefined(flow, view.position)
                return wording
        return self.wording

    def _hide(self, topic: str, partition: int, way: str) -> None:
        leaves = _now()
        away = Absence(topic=topic, partition=partition, way=way, leaves=leaves, left=leaves)
        move(self._world, away, back=False)
        self._absence = replace(away, left=_now())


def move(world: World, away: Absence, *, back: bool) -> None:
    """Take away what an absence is of, or bring it back; one rename each."""
    topic, aside = world.folder / "log" / away.topic, world.folder / "away"
    if away.way == TOPIC:
        topic, aside = (aside, topic) if back else (topic, aside)
        topic.rename(aside)
    elif away.way == FILES:
        folder = topic / world.log.topic(away.topic).topic_id / str(away.partition)
        folder.mkdir(parents=True, exist_ok=True) if not back else None
        folder, aside = (aside, folder) if back else (folder, aside)
        folder.rename(aside)
    else:
        file = topic / "topic.json"
        count = TOPICS[away.topic] if back else away.partition
        aside.write_text(json.dumps(json.loads(file.read_text()) | {"partitions": count}))
        aside.rename(file)


def absences(world: World) -> Iterator[Absence]:
    """All that have ended."""
    lines = world.journal.read_text().splitlines() if world.journal.exists() else []
    return (Absence(**json.loads(line)) for line in lines)


def _often(kind: Kind, weight: int) -> Kind:
    return replace(kind, weight=weight)


def _now() -> float:
    return datetime.now(UTC).timestamp()
