"""A project for commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.commands import Said, Type, type_command
from support.projects import NO_SPARK, Mill, sums


@pytest.fixture
def mill(tmp_path: Path) -> Mill:
    """The project `sums` with an empty topic `events`; no Spark."""
    return sums(tmp_path, NO_SPARK)


@pytest.fixture
def tidemill(mill: Mill) -> Type:
    """Types a command in that project."""

    def type_there(*words: object, **more: Any) -> Said:
        return type_command(mill.project.folder, *words, **more)

    return type_there
