"""Many offsets as short text: in the ledger, a plan of 100,000 scattered records takes 0.5 MB instead of 10 MB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain

from tidemill.core.log.offsets import OffsetRange, TopicPartition, merge_ranges

Packed = Mapping[str, Mapping[int, str]]
"""Offsets by topic and partition. The text has one word for each range, in order: the gap since the end of the range
before (for the first: since 0), then `+` and the length, unless it is 1. `100+5 3` is [100, 105) and [108, 109)."""


def packed(ranges: Mapping[str, Iterable[OffsetRange]]) -> Packed:
    """These offsets as text, each once even if ranges overlap; empty ranges are left out."""
    found: dict[str, dict[int, str]] = {}
    for topic, items in ranges.items():
        words: dict[int, list[str]] = {}
        ends: dict[int, int] = {}
        for item in merge_ranges(items):
            partition, length = item.topic_partition.partition, len(item)
            gap = item.from_offset - ends.get(partition, 0)
            words.setdefault(partition, []).append(str(gap) if length == 1 else f"{gap}+{length}")
            ends[partition] = item.until_offset
        if words:
            found[topic] = {partition: " ".join(texts) for partition, texts in words.items()}
    return found


def unpacked(places: Packed) -> Mapping[str, tuple[OffsetRange, ...]]:
    """The ranges that were packed, by topic: sorted, none empty, none touching another.

    Raises:
        ValueError: a text is not what `packed` writes.
    """
    return {
        t: tuple(chain.from_iterable(_ranges(t, p, texts[p]) for p in sorted(texts))) for t, texts in places.items()
    }


# A batch asks its plan several times which offsets it reads.
@lru_cache(maxsize=16)
def _ranges(topic: str, partition: int, text: str) -> tuple[OffsetRange, ...]:
    place, end, found = TopicPartition(topic, partition), 0, []
    for word in text.split():
        gap, _, length = word.partition("+")
        start = end + int(gap)
        end = start + int(length or 1)
        found.append(OffsetRange(place, start, end))
    return tuple(found)
