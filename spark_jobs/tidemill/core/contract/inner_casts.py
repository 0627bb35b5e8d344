"""Refuses values with texts inside of them that Spark would convert: an array of texts beside one of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.contract.sql_types import NoCommonTypeError, SqlType, common_of
from tidemill.core.errors import DeclarationError

_SHORT = 60


def check_inner_casts(typed: TypedTree, operands: Sequence[exp.Expr], expression: str) -> None:
    """Refuse values that Spark makes one type by casting texts of records inside of some of them.

    Raises:
        DeclarationError: the batch would fail at the first text that cannot be cast.
    """
    types = [typed.exact(each) for each in operands]
    if not any(each is not None and each.parts for each in types):
        return
    try:
        whole = common_of(types)
    except NoCommonTypeError:
        return
    for each, found in zip(operands, types, strict=True):
        # What is written can be cast, or not: that is no matter of records.
        if each.find(exp.Column, exp.Identifier) is not None and _is_cast_inside(found, whole):
            shown = each.sql(dialect="spark")
            shown = shown if len(shown) <= _SHORT else f"{shown[: _SHORT - 3]}..."
            raise DeclarationError(
                f"`{shown}` is `{found}`, but stands where Spark makes `{whole}` of it in {expression!r}: Spark casts "
                "its texts, and the whole batch fails at the first one that cannot be cast",
                fix=f"convert the texts: transform({shown}, item -> try_cast(item AS ...)); or make all values texts",
            )


def _is_cast_inside(found: SqlType | None, whole: SqlType | None) -> bool:
    """Whether a text inside of a value becomes something else."""
    if found is None or whole is None or len(found.parts) != len(whole.parts):
        return False
    pairs = [(one, other) for one, other in zip(found.parts, whole.parts, strict=True) if one and other]
    return any((one.letter == "s" and other.letter not in "sn") or _is_cast_inside(one, other) for one, other in pairs)
