"""The parts of a query that counts, as they are written: a parser that writes them again changes some functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_OPENED, _CLOSED = ("(", "[", "CASE"), (")", "]", "END")
_TEXTS = ("STRING", "RAW_STRING", "IDENTIFIER")


def text_between(query: str, tokens: Sequence[Any], begin: str, end: str) -> str:
    """What stands behind the first word `begin` of a query, up to the word `end` outside of inner brackets.

    If `end` is a bracket or a comma, `begin` is a function, and the text is inside of its brackets.
    """
    words = ["" if token.token_type.name in _TEXTS else token.text.upper() for token in tokens]
    first = words.index(begin) + 1
    first += end in (")", ",")
    depth = 0
    for at in range(first, len(words)):
        if depth == 0 and words[at] == end:
            return query[tokens[first].start : tokens[at - 1].end + 1]
        depth += (words[at] in _OPENED) - (words[at] in _CLOSED)
    return query[tokens[first].start :]
