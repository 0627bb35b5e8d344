"""Where in the user's files a step is declared."""

from __future__ import annotations

import sys


def caller() -> str:
    """File and line of the nearest caller outside this package."""
    frame, own = sys._getframe(1), __name__.rpartition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(own):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
