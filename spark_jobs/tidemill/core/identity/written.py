"""Compares texts that `tidemill.core.identity.declarations` wrote, and shows them to people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from sqlglot import TokenType, tokenize
from sqlglot.errors import SqlglotError

from tidemill.core.time.times import MICROSECOND, show_duration

_TEXTS = (TokenType.STRING, TokenType.RAW_STRING)
_TIME = "_us"
_UNNAMED = ("of", "keep", "size", "columns")
"""Parts whose meaning is clear without their names."""


def same(one: str | None, other: str | None) -> bool:
    """Whether two written texts mean the same; None equals only None.

    SQL is compared token by token in Spark's dialect: blanks, comments, backticks, and the case of keywords and of
    functions do not matter.
    """
    if one == other or one is None or other is None:
        return one == other
    first, second = _read(one), _read(other)
    return first is not None and second is not None and _plain(first) == _plain(second)


def described(text: str) -> str:
    """A written text in a form for people; a text in the old encoding stays as it is."""
    found = _read(text)
    return text if found is None else _shown(found)


def _read(text: str) -> Any:
    """The JSON values of a written text; None for a text in the old encoding."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _plain(value: Any) -> Any:
    """The same JSON values, with each SQL text replaced by its tokens."""
    match value:
        case {"sql": str(text), **others} if not others:
            return ("sql", tuple(words(text)))
        case Mapping():
            return {name: _plain(held) for name, held in value.items()}
        case list():
            return [_plain(held) for held in value]
        case _:
            return value


def words(sql: str) -> Iterator[tuple[str, str]]:
    """The tokens of an SQL expression as kind and text, in upper case where case does not matter."""
    try:
        tokens = tokenize(sql, read="spark")
    except SqlglotError:
        yield ("unreadable", sql)
        return
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        is_function = after is not None and after.token_type is TokenType.L_PAREN
        if token.token_type is TokenType.IDENTIFIER or (token.token_type is TokenType.VAR and not is_function):
            yield ("name", token.text)
        elif token.token_type in _TEXTS:
            yield (token.token_type.name, token.text)
        else:
            # The kind alone tells operators apart: `<>` and `!=` are the same operator.
            said = token.text.upper() if token.text[:1].isalnum() else ""
            yield (token.token_type.name, said)


def _shown(value: Any) -> str:
    match value:
        case {"sql": str(text), **others} if not others:
            return text
        case {"kind": str(kind), **parts}:
            first = sorted(parts.items(), key=lambda part: part[0] not in _UNNAMED)
            return f"{kind}({', '.join(_named(str(name), held) for name, held in first)})"
        case [str(name), {"sql": str(text)}]:
            return f"{name} = {text}"
        case Mapping():
            return ", ".join(_named(str(name), held) for name, held in value.items())
        case list():
            return ", ".join(map(_shown, value)) or "none"
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _named(name: str, value: Any) -> str:
    if name.endswith(_TIME) and isinstance(value, int):
        name, text = name.removesuffix(_TIME), show_duration(timedelta(0) + value * MICROSECOND)
    else:
        text = f"[{_shown(value)}]" if isinstance(value, list) else _shown(value)
    return text if name in _UNNAMED else f"{name}={text}"
