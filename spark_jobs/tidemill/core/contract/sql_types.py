"""The types that Spark's analyzer gives to parts of expressions, and which of them it makes one type.

These are more types than contracts have: expressions compute floats, maps and intervals, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tidemill.core.contract.schema import Array, DataType, Decimal, Object, Scalar
from tidemill.core.sql.interval_fields import joined_intervals
from tidemill.core.sql.kinds import KINDS

NUMBERS = "thilfxd"
"""The letters of numbers, from the narrowest integer to decimals."""

_LETTERS = {name: letter for letter, name in KINDS.items()}
_MOMENTS, _BECOMES_WHAT_IT_MEETS = "DTN", "bDTNyZk"
_UNORDERED = "mCk"


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type of Spark SQL: its name without parameters, and the types inside of it, as far as they are known.

    The name of an interval says its fields: `interval day to hour`.

    `parts` are the type of the items of an array, of the keys and the values of a map, or of the fields of a struct,
    whose names are `names`. The digits of decimals are not held: no rule here depends on them.
    """

    name: str
    parts: tuple[SqlType | None, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def letter(self) -> str:
        """The kind of the type, as `tidemill.core.sql.kinds` has it."""
        if self.name in ("interval year", "interval month"):
            return "Y"
        return _LETTERS.get(self.name, "V" if self.name.startswith("interval ") else "?")

    def __str__(self) -> str:
        """For example `array<struct<a: int>>`."""
        inner = ["..." if part is None else str(part) for part in self.parts]
        if self.names:
            inner = [f"{name}: {part}" for name, part in zip(self.names, inner, strict=True)]
        return f"{self.name}<{', '.join(inner)}>" if inner else self.name


VOID, STRING, BOOLEAN = SqlType("void"), SqlType("string"), SqlType("boolean")


class NoCommonTypeError(Exception):
    """Spark makes two types no single one."""


def sql_type(data_type: DataType) -> SqlType:
    """The type of a column of a contract."""
    match data_type:
        case Scalar():
            return SqlType(data_type.value)
        case Decimal():
            return SqlType("decimal")
        case Array(item):
            return SqlType("array", (sql_type(item),))
        case Object(fields):
            return SqlType("struct", tuple(sql_type(f.type) for f in fields), tuple(f.name for f in fields))


def array_of(item: SqlType | None) -> SqlType:
    """An array."""
    return SqlType("array", (item,))


def named(letter: str) -> SqlType:
    """A type without parts, by its letter."""
    return SqlType(KINDS[letter])


class Texts(Enum):
    """Where Spark converts a text to the type of what stands beside it."""

    EVERYWHERE = "everywhere"
    OUTSIDE = "outside"
    NOWHERE = "nowhere"


def common(one: SqlType | None, other: SqlType | None, texts: Texts = Texts.EVERYWHERE) -> SqlType | None:
    """The type to which Spark converts both values; None if it is not known.

    With OUTSIDE, texts inside of arrays, maps and structs are not converted.

    Raises:
        NoCommonTypeError: there is none.
    """
    if one is None or other is None:
        return None
    if other in (one, VOID):
        return one
    if one == VOID:
        return other
    letters = {one.letter, other.letter}
    if letters <= set(NUMBERS):
        return _number(letters)
    if letters <= set(_MOMENTS):
        return named("N" if "T" not in letters else "T")
    if len(letters) == 1 and one.letter in "YV":
        return SqlType(joined_intervals(one.name, other.name))
    if "s" in letters and len(letters) == 2 and texts is not Texts.NOWHERE:
        return _of_text(other if one.letter == "s" else one)
    if len(letters) == 1 and one.letter in "amo":
        return _of_nested(one, other, texts)
    raise NoCommonTypeError


def common_of(types: Sequence[SqlType | None], texts: Texts = Texts.EVERYWHERE) -> SqlType | None:
    """The type to which Spark converts several values.

    Raises:
        NoCommonTypeError: there is none.
    """
    found: SqlType | None = VOID
    for each in types:
        found = common(found, each, texts)
    return found


def is_ordered(of: SqlType) -> bool:
    """Whether Spark compares values of a type: not those with maps, variants, or intervals of months and days."""
    return of.letter not in _UNORDERED and all(part is None or is_ordered(part) for part in of.parts)


def _number(letters: set[str]) -> SqlType:
    if "d" in letters:
        return named("x" if letters & set("fx") else "d")
    widest = max(letters, key=NUMBERS.index)
    # A float does not hold every integer.
    return named("x" if widest == "f" and len(letters) > 1 else widest)


def _of_text(other: SqlType) -> SqlType:
    if other.letter in "thil":
        return named("l")
    if other.letter in "fxd":
        return named("x")
    if other.letter in _BECOMES_WHAT_IT_MEETS:
        return other
    raise NoCommonTypeError


def _of_nested(one: SqlType, other: SqlType, texts: Texts) -> SqlType:
    if len(one.parts) != len(other.parts) or [n.lower() for n in one.names] != [n.lower() for n in other.names]:
        raise NoCommonTypeError
    inside = Texts.NOWHERE if texts is Texts.OUTSIDE else texts
    # The keys of maps are never texts that are converted.
    rules = [Texts.NOWHERE, inside] if one.letter == "m" else [inside] * len(one.parts)
    parts = tuple(common(a, b, rule) for a, b, rule in zip(one.parts, other.parts, rules, strict=True))
    return SqlType(one.name, parts, one.names)


def is_alike(one: SqlType | None, other: SqlType | None) -> bool:
    """Whether two types are the same, whatever their fields are called; True if that is not certain."""
    if one is None or other is None:
        return True
    same = one.name == other.name and len(one.parts) == len(other.parts)
    return same and all(map(is_alike, one.parts, other.parts))
