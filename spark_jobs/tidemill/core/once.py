"""Questions that are asked once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def once(answers: dict[str, T] | None, name: str, ask: Callable[[str], T]) -> T:
    """The remembered answer about `name`, or a new one, which is remembered: not without `answers`, and not None."""
    found = None if answers is None else answers.get(name)
    if found is None:
        found = ask(name)
        if answers is not None and found is not None:
            answers[name] = found
    return found
