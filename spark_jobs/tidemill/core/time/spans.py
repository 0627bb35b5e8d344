"""Spans of panes in event time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class PaneSpan:
    """The panes that start from `first` to `last`, both included, in microseconds."""

    first: int
    last: int


def united_spans(spans: Iterable[PaneSpan]) -> tuple[PaneSpan, ...]:
    """These panes in as few spans as possible, sorted."""
    found: list[PaneSpan] = []
    for span in sorted(spans):
        if found and span.first <= found[-1].last:
            found[-1] = PaneSpan(found[-1].first, max(found[-1].last, span.last))
        else:
            found.append(span)
    return tuple(found)
