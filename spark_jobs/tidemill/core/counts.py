"""Counts with their nouns, in texts for people."""

from __future__ import annotations

from collections.abc import Mapping


def many(count: int, noun: str) -> str:
    """A count with its noun, for example "1 record", "2,000 records" or "3 batches"."""
    plural = "es" if noun.endswith(("ch", "s")) else "s"
    return f"{count:,} {noun}{'' if count == 1 else plural}"


def counted(counts: Mapping[str, int], noun: str) -> str:
    """Format counts, for example "1 row to a, 4 rows to b"."""
    return ", ".join(f"{many(count, noun)} to {name}" for name, count in counts.items()) or "nothing"
