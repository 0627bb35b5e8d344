"""A service level that a contract promises and commits can measure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLevel:
    """A freshness or latency that a contract promises: at most `most` microseconds, as the file says in `text`.

    `most` is None if the file gives no number with a unit: then nothing can be measured.
    """

    name: str
    text: str
    most: int | None
    element: str = ""
