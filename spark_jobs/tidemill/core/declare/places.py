"""Where declarations stand: the lines that declare something, and the pipelines of a file."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemill.core.declare.pipeline import Pipeline

FINISHED: ContextVar[list[Pipeline]] = ContextVar("FINISHED")
"""Collects the pipelines whose `with` block ended, while somebody who set it loads a file."""


def lines_in(file: str, pipeline: Pipeline) -> list[int]:
    """The lines of a file that declare parts of a pipeline, in order."""
    places = (place.rpartition(":") for place in pipeline.spec.graph.places.values())
    return sorted(int(line) for name, _, line in places if name == file)


def caller() -> str:
    """The file and the line outside of this package that called it."""
    frame, own = sys._getframe(1), __name__.rpartition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(own):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
