"""LIKE in predicates: its patterns, and the sign that takes the meaning from `%` and `_`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

_NAMES = frozenset(["like", "ilike"])
_WILD = "%_"


@dataclass(frozen=True, slots=True)
class Like:
    """One LIKE, as it is called in SQL. A pattern or a sign that is no plain text is None."""

    name: str
    patterns: tuple[str | None, ...]
    sign: str | None


def likes(tree: exp.Expr) -> Iterator[Like]:
    """Every LIKE in a predicate; LIKE ANY and LIKE ALL have several patterns."""
    from sqlglot import exp  # noqa: PLC0415

    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() in _NAMES:
            given = call.expressions
            yield Like(call.name.lower(), tuple(map(_text, given[1:2])), _sign(given[2:3]))
    for like in tree.find_all(exp.Like, exp.ILike):
        escape = [like.parent.expression] if isinstance(like.parent, exp.Escape) else []
        yield Like(like.key, tuple(map(_text, _alternatives(like.expression))), _sign(escape))


def stray_sign(tree: exp.Expr) -> tuple[str, str] | None:
    """A pattern of a predicate that Spark refuses in each row, and why; None if there is none.

    The sign may stand only before `%`, `_` or itself.
    """
    for like in likes(tree):
        for pattern in like.patterns if like.sign else ():
            if pattern is not None and like.sign and (why := _stray(pattern, like.sign)):
                return pattern, why
    return None


def _stray(pattern: str, sign: str) -> str:
    place = 0
    while (place := pattern.find(sign, place)) >= 0:
        after = pattern[place + 1 : place + 2]
        if not after:
            return f"it ends with its escape sign `{sign}`"
        if after not in (*_WILD, sign):
            return f"its escape sign `{sign}` stands before `{after}`"
        place += 2
    return ""


def _alternatives(node: object) -> Sequence[object]:
    from sqlglot import exp  # noqa: PLC0415

    while isinstance(node, exp.Paren | exp.Any | exp.All):
        node = node.this
    return node.expressions if isinstance(node, exp.Tuple) else [node]


def _text(node: object) -> str | None:
    from sqlglot import exp  # noqa: PLC0415

    return str(node.this) if isinstance(node, exp.Literal | exp.RawString) else None


def _sign(escape: Sequence[object]) -> str | None:
    return _text(escape[0]) if escape else "\\"
