"""What tables of sessions, of firings and of totals must hold, in plain Python: all records, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from chaos.world import COUNT, GAP

Found = tuple[tuple[Any, ...], int, tuple[Any, ...]]
"""A row: what tells it apart, how many records it is about, and the values that follow from them."""


class Fact(NamedTuple):
    """What a record says."""

    user: str
    time: datetime
    amount: int


def by_kind(facts: Sequence[Fact]) -> dict[str, Iterator[Found]]:
    """The rows of each table, of records in the order in which firings take them."""
    users = {fact.user: [each for each in facts if each.user == fact.user] for fact in facts}
    return {
        "visits": (row for of_user in users.values() for row in _sessions(of_user)),
        "threes": (row for of_user in users.values() for row in _threes(of_user)),
        "totals": (((user,), *_summed(of_user)) for user, of_user in users.items()),
    }


def _sessions(facts: Sequence[Fact]) -> Iterator[Found]:
    """Records of a user that are no further apart than the gap are of one session."""
    gap, inside = timedelta(seconds=GAP), list[Fact]()
    for fact in (*sorted(facts, key=lambda fact: fact.time), None):
        if inside and (fact is None or fact.time > inside[-1].time + gap):
            count, values = _summed(inside)
            yield (inside[0].time, inside[0].user), count, (inside[-1].time + gap, *values)
            inside = []
        if fact is not None:
            inside.append(fact)


def _threes(facts: Sequence[Fact]) -> Iterator[Found]:
    """Every third record of a user fires, with the two before it."""
    for end in range(COUNT, len(facts) + 1, COUNT):
        count, values = _summed(facts[end - COUNT : end])
        yield (facts[0].user, *values), count, ()


def _summed(facts: Iterable[Fact]) -> tuple[int, tuple[int]]:
    amounts = [fact.amount for fact in facts]
    return len(amounts), (sum(amounts),)
