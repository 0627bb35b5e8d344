"""What the shape of a table says (`Position.shapes`), which need not be declared any more."""

from __future__ import annotations

from collections.abc import Mapping

_FOLDED = ('"kind":"tumbling_buffer"', '"kind":"sliding_buffer"', '"kind":"record_windows"')


def is_of_firings(shape: Mapping[str, str]) -> bool:
    """Whether it is the shape of a table of firings (`FiringSink.shape`)."""
    return "accumulation" in shape or any(kind in shape.get("window", "") for kind in _FOLDED)
