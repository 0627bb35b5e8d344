"""Parts of the long forms: all of them take more than an hour, so a run of CI takes some, drawn by its commit."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from zlib import crc32

import pytest

VARIABLE = "TIDEMILL_LONG_PART"
"""Which part is taken: `2/6` is the second of six. Without it, all that `-m` selects."""


def left_out(items: Sequence[pytest.Item], part: str) -> list[pytest.Item]:
    """The long tests that a part does not have; those of one file are in one part.

    Raises:
        pytest.UsageError: the text names no part.
    """
    said = re.fullmatch(r"(\d+)/(\d+)", part)
    if said is None or not 1 <= int(said[1]) <= int(said[2]):
        raise pytest.UsageError(f"{VARIABLE} is {part!r}, expected a part such as 2/6")
    number, parts = int(said[1]) - 1, int(said[2])
    long = (item for item in items if item.get_closest_marker("long"))
    # By the file's name, so that a new file moves no other one to another part.
    return [item for item in long if crc32(item.path.name.encode()) % parts != number]


def take_part(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long tests of other parts, if a part is asked for."""
    if part := os.environ.get(VARIABLE):
        dropped = set(left_out(items, part))
        config.hook.pytest_deselected(items=list(dropped))
        items[:] = [item for item in items if item not in dropped]
