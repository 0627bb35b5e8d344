"""Parts of the long forms: all of them take more than an hour, so a run of CI takes some, drawn by its commit."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from zlib import crc32

import pytest

VARIABLE = "TIDEMILL_LONG_PART"
"""Which part is taken: `2/6` is the second of six. Without it, all that `-m` selects."""

_MANY = 100
"""The long tests of a file share what they start; so many would take all the time of a part."""


def left_out(items: Sequence[pytest.Item], part: str) -> list[pytest.Item]:
    """The long tests that a part does not have; those of one file are in one part, unless they are more than `_MANY`.

    Raises:
        pytest.UsageError: the text names no part.
    """
    said = re.fullmatch(r"(\d+)/(\d+)", part)
    if said is None or not 1 <= int(said[1]) <= int(said[2]):
        raise pytest.UsageError(f"{VARIABLE} is {part!r}, expected a part such as 2/6")
    number, parts = int(said[1]) - 1, int(said[2])
    long = [item for item in items if item.get_closest_marker("long")]
    count = Counter(item.path for item in long)
    # By the name, so that a new file moves no other one to another part.
    names = (item.path.name if count[item.path] <= _MANY else item.nodeid for item in long)
    return [item for item, name in zip(long, names, strict=True) if crc32(name.encode()) % parts != number]


def take_part(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long tests of other parts, if a part is asked for."""
    if part := os.environ.get(VARIABLE):
        dropped = set(left_out(items, part))
        config.hook.pytest_deselected(items=list(dropped))
        items[:] = [item for item in items if item not in dropped]
