"""Which cases of a test every run tries: the others are its long form."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product
from typing import Any

import pytest


def shortened(cases: Iterable[Any], short: Collection[Any], mark: Any = pytest.mark.long) -> list[Any]:
    """All cases; those that are not short have the mark. Tuples are the values of several names."""
    cases = list(cases)
    assert all(case in cases for case in short), "each short case is one of the cases"
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*v, marks=() if c in short else mark) for c, v in zip(cases, values, strict=True)]


def crossed(*axes: Iterable[Any], mark: Any = pytest.mark.long) -> list[Any]:
    """All combinations of the values; as few are without the mark as it takes for each value to be in one of them."""
    values = [list(axis) for axis in axes]
    short = {tuple(n % len(axis) for axis in values) for n in range(max(map(len, values)))}
    found = []
    for each in product(*(range(len(axis)) for axis in values)):
        case = (axis[n] for axis, n in zip(values, each, strict=True))
        found.append(pytest.param(*case, marks=() if each in short else mark))
    return found
