"""The one type of values that functions of arrays and maps put together or look for."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.core.contract.operator_rules import MismatchError, together
from tidemill.core.contract.sql_types import SqlType, Texts


def joined(types: Sequence[SqlType | None]) -> SqlType | None:
    """The one type of an array's items and a further one, or of two arrays: Spark converts neither texts nor intervals.

    Raises:
        MismatchError: there is none, or intervals have other fields.
    """
    found = together(types, Texts.NOWHERE)
    for each in types:
        if (interval := _other_interval(each, found)) is not None:
            fix = "add them, or write both with the same unit"
            raise MismatchError(f"Spark converts no `{interval}` to an interval with other fields there", fix)
    return found


def _other_interval(one: SqlType | None, whole: SqlType | None) -> SqlType | None:
    """An interval inside of a type that has other fields in another one; None if there is none."""
    if one is None or whole is None:
        return None
    if one.letter in "YV":
        return one if one.letter == whole.letter and one.name != whole.name else None
    pairs = zip(one.parts, whole.parts, strict=False)
    return next((found for a, b in pairs if (found := _other_interval(a, b)) is not None), None)
