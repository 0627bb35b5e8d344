"""What `tidemill contract diff --fail-on` asks for."""

from __future__ import annotations

from tidemill.cli.reports.formats import FailOn
from tidemill.contracts.changes.change import Breaks
from tidemill.contracts.nodes import closest
from tidemill.core.errors import InputError

_WORDS = (*FailOn, *Breaks)


def failing_of(wanted: str) -> tuple[frozenset[Breaks], FailOn]:
    """What changes must not break, and from which other findings on the command fails.

    Raises:
        InputError: there is another word among them, or none.
    """
    words = [word.strip() for word in wanted.split(",")]
    for word in words:
        if word not in _WORDS:
            fix = closest(word, _WORDS) or f"a list of {', '.join(_WORDS)}, such as readers,writers"
            raise InputError(f"--fail-on {wanted}: `{word}` is nothing to fail on", fix=fix)
    named = frozenset(Breaks(word) for word in words if word not in set(FailOn))
    every = not named or FailOn.ERROR in words
    return frozenset(Breaks) if every else named, FailOn.WARNING if FailOn.WARNING in words else FailOn.ERROR
