"""What Spark's operators give for operands of known types, or why Spark refuses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemill.core.contract.sql_types import (
    NUMBERS,
    STRING,
    VOID,
    NoCommonTypeError,
    SqlType,
    Texts,
    common,
    common_of,
    is_alike,
    is_ordered,
    named,
)
from tidemill.core.sql.kinds import KINDS, listed
from tidemill.core.sql.operator_lines import (
    CASTS,
    OPERATOR_LINES,
    SIGN_LINES,
)

Types = Sequence[SqlType | None]


class MismatchError(Exception):
    """Spark's analyzer refuses a part of an expression: why, and what to do."""

    def __init__(self, why: str, fix: str = "") -> None:
        super().__init__(why)
        self.why, self.fix = why, fix


def _table(lines: Mapping[str, str]) -> dict[str, list[tuple[str, ...]]]:
    return {sign: [tuple(line.split()) for line in text.splitlines() if line.strip()] for sign, text in lines.items()}


_CONVERTED = {NUMBERS: f"s{NUMBERS}", "s": "sthilfxdbDTNyYVCZk", "DTN": "sDTN", "b": "sb", "y": "sy"}
_OPERATORS, _SIGNS = _table(OPERATOR_LINES), _table(SIGN_LINES)


def operated(sign: str, left: SqlType | None, right: SqlType | None) -> SqlType | None:
    """What an operator of two values gives; None if it is not certain.

    Raises:
        MismatchError: Spark has no such operator for these types.
    """
    for side, value in enumerate((left, right)):
        if value is not None and not any(value.letter in (*line[side], "?") for line in _OPERATORS[sign]):
            raise MismatchError(f"`{sign}` takes no `{value}`", "convert the value, or take what is inside of it")
    if left is None or right is None:
        return None
    for lefts, rights, gives in _OPERATORS[sign]:
        if left.letter in lefts and right.letter in rights:
            return _given(gives, left, right)
    beside = [kind for lefts, rights, _ in _OPERATORS[sign] if left.letter in lefts for kind in rights]
    takes = f"beside `{left}`, `{sign}` takes {listed(beside)}"
    raise MismatchError(f"`{sign}` stands between `{left}` and `{right}`, and {takes}", "convert a value")


def signed(sign: str, value: SqlType | None) -> SqlType | None:
    """What an operator of one value gives; None if it is not certain.

    Raises:
        MismatchError: Spark has no such operator for this type.
    """
    if value is None:
        return None
    for kinds, gives in _SIGNS[sign]:
        if value.letter in kinds:
            return value if gives == "left" else named(gives)
    takes = listed(kind for kinds, _ in _SIGNS[sign] for kind in kinds)
    raise MismatchError(f"`{sign}` takes {takes}, not `{value}`", "convert the value, or compare it")


def compared(left: SqlType | None, right: SqlType | None) -> None:
    """Check that Spark can compare two values.

    Raises:
        MismatchError: they have no common type, or one that has no order.
    """
    check_order([left if _are_alike([left, right]) else together([left, right], Texts.OUTSIDE)])


def is_among(types: Types) -> None:
    """Check that Spark can look for the first value among the others.

    Raises:
        MismatchError: they have no common type, or one that has no order.
    """
    check_order(types[:1] if _are_alike(types) else [together(types)])


def _are_alike(types: Types) -> bool:
    return all(each is not None and is_alike(types[0], each) for each in types)


def check_order(types: Types) -> None:
    """Check that values of these types can be told apart and sorted.

    Raises:
        MismatchError: Spark compares none of a type.
    """
    for each in types:
        if each is not None and not is_ordered(each):
            raise MismatchError(f"Spark compares no values of type `{each}`", "compare what is inside of them")


def check_texts(types: Types, name: str, *, more: str = "") -> None:
    """Check that values are texts or become texts, or are of the kinds of `more`.

    Raises:
        MismatchError: one does not become a text.
    """
    for found in types:
        if found is not None and found.letter not in f"{_CONVERTED['s']}n{more}?":
            raise MismatchError(f"`{name}` takes texts, not `{found}`", "take an item or a field of it")


def together(types: Types, texts: Texts = Texts.EVERYWHERE) -> SqlType | None:
    """The one type to which Spark converts values; None if it is not certain.

    Raises:
        MismatchError: there is none.
    """
    try:
        return common_of(types, texts)
    except NoCommonTypeError:
        shown = " and ".join(f"`{each}`" for each in dict.fromkeys(types) if each is not None)
        fix = "convert one of them to the type of the other"
        raise MismatchError(f"Spark makes {shown} no single type", fix) from None


def is_converted(found: SqlType | None, target: SqlType | None) -> bool:
    """Whether Spark converts a value by itself where it wants a type; True if that is not certain."""
    if found is None or target is None or found.letter == "n":
        return True
    taken = next((kinds for wanted, kinds in _CONVERTED.items() if target.letter in wanted), target.letter)
    return found.letter in taken


def is_cast(found: SqlType | None, target: SqlType | None) -> bool:
    """Whether Spark has a cast from a type to another one; True if that is not certain."""
    if found is None or target is None or found.letter not in KINDS or target.letter not in CASTS:
        return True
    if found.letter not in CASTS[target.letter]:
        return False
    if found.letter == "k" and target.letter == "m" and target.parts[0] not in (None, STRING):
        return False
    if target.letter == "k" and found.letter == "a":
        return is_cast(found.parts[0], target) and found.parts[0] != VOID
    if found.letter != target.letter or target.letter not in "amo":
        return True
    return len(found.parts) == len(target.parts) and all(map(is_cast, found.parts, target.parts))


def _given(gives: str, left: SqlType, right: SqlType) -> SqlType | None:
    match gives:
        case "common":
            return common(left, right)
        case "left":
            return left
        case "right":
            return right
        case "days":
            return SqlType("interval day")
        case "moved":
            moment, by = (left, right) if left.letter in "DTN" else (right, left)
            return moment if moment.letter != "D" or by.name == "interval day" else named("T")
        case _:
            return named(gives)
