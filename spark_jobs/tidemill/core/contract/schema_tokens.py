"""The words of a schema in Spark's SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"""\s*(`(?:[^`]|``)*`|'[^']*'|"[^"]*"|\w+|[<>(),:.])""")
MOST_NESTED = 100
"""How deep types may be nested; Spark takes some more, until its stack is full."""


class SchemaFaultError(Exception):
    """Why a text is no schema."""


def words_of(text: str) -> Iterator[str]:
    """The words and signs of a schema.

    Raises:
        SchemaFaultError: a sign has no meaning.
    """
    at = 0
    while rest := text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise SchemaFaultError(f"`{rest[0]}` has no meaning there: put a name with signs in backticks")
        yield found[1]
        at = found.end()
