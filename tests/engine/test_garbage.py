"""Rows that were handed to Java are let go of, although Python sees no reason to collect."""

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


@pytest.mark.parametrize(("batches", "gone"), [(1, False), (3, False), (4, True)])
def test_stand_ins_are_collected_once_enough_was_handed_over(batches: int, gone: bool) -> None:
    there = weakref.ref(StandIn())
    for _ in range(batches):
        garbage.handed(garbage.MOST // 4)
        garbage.let_go()
    assert (there() is None) == gone
