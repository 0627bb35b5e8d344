"""Which texts of an Arrow column do not match a pattern."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.contract.patterns import linear


def unmatched(texts: Any, pattern: str) -> Any:
    """The mask of the texts that do not match as a whole; null where the text is null. The time is linear.

    Raises:
        pa.ArrowException: the column is no text, or RE2 cannot express the pattern.
    """
    regex, most = linear(pattern)
    wrong = pc.invert(pc.match_substring_regex(texts, regex))
    return wrong if most is None else pc.or_(wrong, pc.greater(pc.utf8_length(texts), most))
