"""Questions that are asked once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, overload

T = TypeVar("T")


@overload
def once(answers: dict[str, T] | None, name: str, ask: Callable[[str], T]) -> T: ...


@overload
def once(answers: dict[str, T] | None, name: str, ask: Callable[[str], T | None]) -> T | None: ...


def once(answers: dict[str, T] | None, name: str, ask: Callable[[str], T | None]) -> T | None:
    """The answer about `name`: the remembered one, otherwise a new one.

    A new one is remembered, unless it is None: what is not there yet is asked for again. Without `answers`, nothing is
    remembered.
    """
    if answers is not None and name in answers:
        return answers[name]
    found = ask(name)
    if answers is not None and found is not None:
        answers[name] = found
    return found
