"""Which pieces a key still needs: those that a later firing may be made of."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.core.ordered.firing import State
from tidemill.core.ordered.kept import ids_of


def pieces_of(state: State) -> Iterator[int]:
    """The ids of the pieces that this state names; aggregates of all others can be forgotten."""
    match state["machine"]:
        case "tumbling":
            yield state["piece"]
        case "tumbling time":
            yield from (piece for _, piece in state["pieces"])
        case "record windows":
            yield from state["pieces"]
        case "sliding":
            yield from ids_of(state["ids"])
        case _:
            for window in state["open"]:
                yield from ids_of(window.get("fresh", ()))
                yield from ids_of(window.get("earlier", ()))
                yield from (held[0] for held in window.get("held", ()))
                for _, _, runs in window.get("published", ()):
                    yield from ids_of(runs)
