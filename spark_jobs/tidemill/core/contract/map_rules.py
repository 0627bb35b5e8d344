"""What Spark's functions of maps give, or why Spark refuses their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidemill.core.contract.joined_types import joined
from tidemill.core.contract.operator_rules import MismatchError, check_order, together
from tidemill.core.contract.sql_types import BOOLEAN, STRING, VOID, SqlType, Texts, array_of, named

Types = Sequence[SqlType | None]


def inside(of: SqlType | None, at: int = 0) -> SqlType | None:
    """The items of an array, the keys or the values of a map."""
    return of.parts[at] if of is not None and at < len(of.parts) else None


def _map(keys: SqlType | None, values: SqlType | None) -> SqlType:
    if keys is not None and _is_in(keys, "mk"):
        raise MismatchError("the keys of a map are no maps and no variants", "use what is inside of them")
    return SqlType("map", (keys, values))


def _is_in(of: SqlType, letters: str) -> bool:
    return of.letter in letters or any(part is not None and _is_in(part, letters) for part in of.parts)


def is_asked(value: SqlType | None) -> None:
    """Check that a value which is looked for is none that Spark never finds.

    Raises:
        MismatchError: it is NULL.
    """
    if value == VOID:
        raise MismatchError("Spark does not look for NULL", "write exists(..., item -> item IS NULL)")


def _key_there(types: Types) -> SqlType | None:
    is_asked(types[1])
    check_order([joined([inside(types[0]), types[1]])])
    return BOOLEAN


def _pairs(types: Types) -> SqlType | None:
    if len(types) % 2:
        raise MismatchError(
            "`map` takes keys with their values, so an even number of arguments", "give every key a value"
        )
    return _map(together(types[::2]), together(types[1::2]))


def _same_maps(types: Types) -> SqlType | None:
    return together(types, Texts.NOWHERE)


def _same_keys(types: Types) -> SqlType | None:
    keys = together([inside(types[0]), inside(types[1])], Texts.NOWHERE)
    return _map(keys, types[2])


def _entries(types: Types) -> SqlType | None:
    return array_of(SqlType("struct", (inside(types[0]), inside(types[0], 1)), ("key", "value")))


def _from_entries(types: Types) -> SqlType | None:
    entry = inside(types[0])
    if types[0] is not None and (entry is None or entry.letter != "o" or len(entry.parts) != 2):
        if entry is None and types[0].letter == "a":
            return None
        raise MismatchError(f"`map_from_entries` takes an array of structs of two fields, not `{types[0]}`", "")
    return _map(inside(entry), inside(entry, 1)) if entry is not None else None


_IN_VARIANTS = "sthilfxdbDTNyk?"


def _object(types: Types) -> SqlType | None:
    if types[0] is not None and not (types[0].letter in "amo" and _becomes_variant(types[0])):
        said = f"`to_variant_object` takes no `{types[0]}`: a variant has no NULL without a type, no interval, and"
        raise MismatchError(f"{said} only texts as keys of maps", "leave such a part out, or cast it")
    return named("k")


def _becomes_variant(of: SqlType | None) -> bool:
    if of is None or of.letter not in "amo":
        return of is None or of.letter in _IN_VARIANTS
    keys = of.parts[0] if of.letter == "m" else None
    return (keys is None or keys.letter == "s") and all(map(_becomes_variant, of.parts))


MAP_RULES: Mapping[str, Callable[[Types], SqlType | None]] = {
    "key_there": _key_there,
    "new_values": lambda types: _map(inside(types[0]), types[1]),
    "new_keys": lambda types: _map(types[1], inside(types[0], 1)),
    "pairs": _pairs,
    "texts_by_text": lambda _: _map(STRING, STRING),
    "keys": lambda types: array_of(inside(types[0])),
    "values": lambda types: array_of(inside(types[0], 1)),
    "entries": _entries,
    "of_arrays": lambda types: _map(inside(types[0]), inside(types[1])),
    "same_maps": _same_maps,
    "same_keys": _same_keys,
    "of_entries": _from_entries,
    "object": _object,
}
"""What the rules of `result_lines` say about maps, by their names."""
