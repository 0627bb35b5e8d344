"""Which pieces a key still needs: those that a later firing may be made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidemill.core.ordered.firing import State
from tidemill.core.ordered.kept import Runs, ids_of, runs_of


def pieces_of(state: State) -> Runs:
    """Pieces of which each may be in a firing without the others; aggregates of what is not named can be forgotten."""
    return runs_of(sorted(_alone(state)))


def wholes_of(state: State) -> Sequence[Sequence[int]]:
    """Runs of pieces that later firings have as a whole, perhaps with more pieces beside them.

    An evictor may still look at one of them.
    """
    if "open" not in state:
        return []
    return [
        run
        for window in state["open"]
        for runs in (window.get("earlier", ()), *(pieces for _, _, pieces in window.get("published", ())))
        for run in runs
    ]


def _alone(state: State) -> Iterator[int]:
    match state["machine"]:
        case "tumbling":
            yield state["piece"]
        case "tumbling time":
            yield from (piece for _, piece in state["pieces"])
        case "record windows":
            yield from state["pieces"]
        case "sliding":
            yield from ids_of(state["ids"])
        case "sorted":
            yield from (piece for *_, piece, _, marker in state["waiting"] if not marker)
            yield from ids_of(state["pieces"])
        case _:
            for window in state["open"]:
                yield from ids_of(window.get("fresh", ()))
                yield from (held[0] for held in window.get("held", ()))
