"""How state is written: with the name of its machine and a version, and ids of pieces as runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, TypeAlias

from tidemill.core.errors import Incompatible
from tidemill.core.ordered.firing import Pieces, State

VERSION = 1

Runs: TypeAlias = Sequence[Sequence[int]]
"""Ids in their order: [first, last] for each stretch of ids that follow one another."""


def kept(machine: str, **parts: Any) -> State:
    """The state of a key of this kind of machine."""
    return {"machine": machine, "version": VERSION, **parts}


def check_state(state: State, machine: str) -> None:
    """Refuse the state of another kind of machine, or of a newer version.

    Raises:
        Incompatible: this machine cannot go on from such a state.
    """
    found, version = state.get("machine"), state.get("version")
    if (found, version) != (machine, VERSION):
        raise Incompatible(
            f"the state of a key is of {found!r} in version {version!r}, expected {machine!r} in version {VERSION}",
            fix="run the version of Tidemill that wrote it, or `tidemill rebuild` the pipeline",
        )


def runs_of(ids: Iterable[int]) -> list[list[int]]:
    """Ids in their order as runs: [first, last] for each stretch of ids that follow one another."""
    if isinstance(ids, range) and ids.step == 1:
        return [[ids.start, ids.stop - 1]] if ids else []
    runs: list[list[int]] = []
    for each in ids:
        if runs and each == runs[-1][1] + 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    return runs


def ids_of(runs: Runs) -> list[int]:
    """The ids in these runs."""
    return [each for first, last in runs for each in range(first, last + 1)]


def joined(*parts: Runs) -> list[list[int]]:
    """The ids of all these runs, which have none twice, as runs."""
    found: list[list[int]] = []
    for first, last in sorted((first, last) for first, last in chain.from_iterable(parts)):
        if found and first == found[-1][1] + 1:
            found[-1][1] = last
        else:
            found.append([first, last])
    return found


def pieces_in(runs: Runs) -> Pieces:
    """The pieces of these runs; a `range` if they are one run, however long it is."""
    if len(runs) == 1:
        return range(runs[0][0], runs[0][1] + 1)
    return tuple(ids_of(runs))
