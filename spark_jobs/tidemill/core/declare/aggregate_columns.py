"""Which columns an aggregate reads, and whether its expressions give the same result when computed again."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.expressions import filled, parsed
from tidemill.core.sql.text import quoted

ALL_ROWS = "*"
"""The expression of a `Count` of rows instead of values."""


def columns_read(aggregate: Aggregate) -> frozenset[str]:
    """The columns of a row that an aggregate reads, spelled as in its expressions, without hidden columns that it adds.

    Raises:
        DeclarationError: an expression cannot be computed from one row; or, for a triple that the user wrote, `partial`
            cannot be computed from a group of rows, or `merge` or `finish` reads more than the state.
    """
    if aggregate.over:
        texts = [text for text in aggregate.over if text != ALL_ROWS]
        return frozenset(column for text in texts for column in parsed(text).columns)
    triple = aggregate.triple
    for text in triple.merge.values():
        _check_state(text, triple.partial, aggregates=True)
    _check_state(triple.finish, triple.partial, aggregates=False)
    return frozenset(c for text in triple.partial.values() for c in parsed(text, aggregates=True).columns)


def _check_state(text: str, state: Mapping[str, str], *, aggregates: bool) -> None:
    used = parsed(filled(text, {name: quoted(name) for name in state}), aggregates=aggregates).columns
    others = sorted(column for column in used if column not in state)
    if others:
        raise DeclarationError(
            f"{text!r} reads `{others[0]}`, but merge and finish see state only: {', '.join(state)}",
            fix=f"write {{{others[0]}}} for a state column, and read columns of rows in partial",
        )
