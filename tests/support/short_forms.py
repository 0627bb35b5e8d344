"""Which cases of a test every run tries: the others are its long form."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product
from typing import Any

import pytest


def shortened(cases: Iterable[Any], short: Collection[Any], mark: Any = pytest.mark.long) -> list[Any]:
    """All cases; those that are not short have the mark."""
    cases = list(cases)
    assert all(case in cases for case in short), "each short case is one of the cases"
    return [case if case in short else pytest.param(case, marks=mark) for case in cases]


def crossed(*axes: Iterable[Any]) -> list[Any]:
    """All combinations of the values; as few are short as it takes for each value to be in a short one."""
    values = [list(axis) for axis in axes]
    short = {tuple(n % len(axis) for axis in values) for n in range(max(map(len, values)))}
    numbers = product(*(range(len(axis)) for axis in values))
    return [
        pytest.param(
            *(axis[n] for axis, n in zip(values, each, strict=True)), marks=() if each in short else pytest.mark.long
        )
        for each in numbers
    ]
