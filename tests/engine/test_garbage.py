"""Rows and plans in Java are let go of, although Python sees no reason to collect."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from tidemill.engine.spark import garbage


class StandIn:
    """Refers to itself, as py4j's stand-ins do."""

    def __init__(self) -> None:
        self.method = self


@pytest.fixture(autouse=True)
def _nobody_else_collects(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(garbage, "_handed", 0)
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    ("batches", "each", "gone"),
    [
        (1, garbage.MOST // 4, False),
        (3, garbage.MOST // 4, False),
        (4, garbage.MOST // 4, True),
        (garbage.MOST // garbage.PLANS - 1, 0, False),
        (garbage.MOST // garbage.PLANS, 0, True),
    ],
)
def test_stand_ins_are_collected_once_enough_was_handed_over(batches: int, each: int, gone: bool) -> None:
    there = weakref.ref(StandIn())
    for _ in range(batches):
        garbage.handed(each)
        garbage.let_go()
    assert (there() is None) == gone
