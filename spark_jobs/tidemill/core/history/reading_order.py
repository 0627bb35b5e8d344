"""Which batch a record counts in: the last one that read it, because earlier ones put it aside."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping

from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Ranges

Stretches = tuple[tuple[int, ...], tuple[int, ...]]
"""The first offset of each stretch, in order, and the number of the batch that its records count in."""


def reading_order(reads: Iterable[Ranges]) -> Mapping[TopicPartition, Stretches]:
    """Where records count, by topic-partition; batches are numbered in the order of `reads`, from 0.

    A record that no batch read counts in -1.
    """
    found: dict[TopicPartition, tuple[list[int], list[int]]] = {}
    for number, ranges in enumerate(reads):
        for each in (r for of_topic in ranges.values() for r in of_topic if r):
            firsts, numbers = found.setdefault(each.topic_partition, ([], []))
            _put(firsts, numbers, each.from_offset, each.until_offset, number)
    return {place: (tuple(firsts), tuple(numbers)) for place, (firsts, numbers) in found.items()}


def _put(firsts: list[int], numbers: list[int], begin: int, end: int, number: int) -> None:
    """Let `[begin, end)` count in `number`, and what follows it as before."""
    after = bisect_right(firsts, end)
    following = numbers[after - 1] if after else -1
    before = bisect_right(firsts, begin - 1)
    firsts[before:after] = [begin, end]
    numbers[before:after] = [number, following]
