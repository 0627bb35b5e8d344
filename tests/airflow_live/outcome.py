"""What came of the acts of a story, for the tests that look at it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from chaos.oracle import Judgement


@dataclass
class Story:
    """What came of each act: batches with the attempt that committed, and executors."""

    kills: int = 0
    overlapped: dict[str, Any] = field(default_factory=dict)
    task_killed: dict[str, Any] = field(default_factory=dict)
    supervisor_killed: dict[str, Any] = field(default_factory=dict)
    cleared: dict[str, Any] = field(default_factory=dict)
    cleared_running: dict[str, Any] = field(default_factory=dict)
    marked: dict[str, Any] = field(default_factory=dict)
    decided: dict[str, Any] = field(default_factory=dict)
    backfilled: dict[str, Any] = field(default_factory=dict)
    started: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str | None] = field(default_factory=dict)
    links: dict[str, str | None] = field(default_factory=dict)
    runs: Counter[str] = field(default_factory=Counter)
    judgement: Judgement = field(default_factory=Judgement)
