"""Exhaustive search: every world that can be reached, the promises checked in each, the shortest way to a breach."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from protocol.model import Broken, Model, World, committed, offsets_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A promise that does not hold, and the shortest schedule that leads there."""

    promise: str
    schedule: tuple[str, ...]

    def __str__(self) -> str:
        steps = "\n".join(f"  {number}. {step}" for number, step in enumerate(self.schedule, 1))
        return f"{self.promise}, after\n{steps}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """How many worlds there are, and the first breach, if any. `done` counts worlds in which all is committed."""

    worlds: int
    done: int
    breach: Breach | None = None


def search(model: Model, start: World | None = None) -> Searched:
    """Breadth first from the start, so that the first breach found has the shortest schedule."""
    begin = start or World()
    reached: dict[World, _Before | None] = {_alike(begin): None}
    waiting, done = deque([begin]), 0
    while waiting:
        world = waiting.popleft()
        try:
            check(model, world)
            steps = list(model.steps(world))
            if not steps:
                check_end(model, world)
                done += 1
        except Broken as broken:
            breach = Breach(promise=str(broken), schedule=tuple(_way(reached, world)))
            return Searched(worlds=len(reached), done=done, breach=breach)
        for what, after in steps:
            one = _alike(after)
            if one not in reached:
                reached[one] = _Before(world, what)
                waiting.append(after)
    return Searched(worlds=len(reached), done=done)


class _Before(NamedTuple):
    """How a world was first reached."""

    world: World
    what: str


def _alike(world: World) -> World:
    """One world for all that differ only in which writer is which."""
    return world._replace(writers=tuple(sorted(world.writers)))


def check(model: Model, world: World) -> None:
    """What must hold in every world.

    Raises:
        Broken: something does not.
    """
    view = model.view(world)
    end = committed(view)
    state = model.visible(world, view.position.slices)
    if state != tuple(range(end)):
        raise Broken(f"offsets 0 to {end - 1} are committed, state counts {state}")
    batch, offsets = world.published
    ahead = [offsets_of(view.open_batch.plan)] if view.open_batch else []
    allowed = {tuple(range(end)), *(tuple(range(end)) + more for more in ahead)}
    if offsets not in allowed:
        raise Broken(f"offsets 0 to {end - 1} are committed, {offsets} are published")
    if batch > view.last_batch_id:
        raise Broken(f"batch {batch} is published, the last one planned is {view.last_batch_id}")
    claims = [(w.plan, w.attempt) for w in world.writers if w.plan >= 0 and w.at in ("append state", "audit")]
    if len(set(claims)) < len(claims):
        raise Broken("two writers hold one claim")


def check_end(model: Model, world: World) -> None:
    """What must hold where nobody can do anything more.

    Raises:
        Broken: something does not.
    """
    end = committed(model.view(world))
    if end < world.end:
        raise Broken(f"nobody goes on, but only {end} of {world.end} offsets are committed")
    if world.published[1] != tuple(range(end)):
        raise Broken(f"{end} offsets are committed, {world.published[1]} are published at the end")


def _way(reached: dict[World, _Before | None], world: World) -> list[str]:
    steps: list[str] = []
    while (before := reached[_alike(world)]) is not None:
        world = before.world
        steps.append(before.what)
    return steps[::-1]
