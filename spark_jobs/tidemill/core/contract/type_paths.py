"""What is inside of a value: fields of structs, items of arrays, values of maps."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tidemill.core.contract.operator_rules import MismatchError, is_converted
from tidemill.core.contract.sql_types import VOID, SqlType, array_of
from tidemill.core.sql.kinds import listed

_INDEXES = "thiln"


def part_of(whole: SqlType | None, name: str) -> SqlType | None:
    """The type of `whole.name`; None if it is not certain.

    Raises:
        MismatchError: there is no such field.
    """
    if whole is None:
        return None
    match whole.letter:
        case "o":
            return _field(whole, name)
        case "m":
            return whole.parts[1]
        case "a" if (item := whole.parts[0]) is None or item.letter == "o":
            return array_of(None if item is None else _field(item, name))
        case "n":
            return VOID
        case _:
            raise MismatchError(f"`{whole}` has no fields, so no `{name}`", "name a column that is a struct")


def item_of(whole: SqlType | None, key: exp.Expr, kind: SqlType | None) -> SqlType | None:
    """The type of `whole[key]`; None if it is not certain.

    Raises:
        MismatchError: it has no such items.
    """
    if whole is None:
        return None
    match whole.letter:
        case "o" if isinstance(key, exp.Literal) and key.is_string:
            return _field(whole, key.name)
        case "a" if isinstance(key, exp.Literal) and key.is_string:
            return part_of(whole, key.name)
        case "a":
            if kind is not None and kind.letter not in _INDEXES:
                raise MismatchError(
                    f"an index of an array is {listed(_INDEXES)}, not `{kind}`", "write a whole number, from 0"
                )
            return whole.parts[0]
        case "m":
            keys = whole.parts[0]
            differs = (
                kind is not None and keys is not None and keys.letter in "YV" and kind.name not in (keys.name, "void")
            )
            if differs or not is_converted(kind, keys):
                raise MismatchError(f"the keys of `{whole}` are not of type `{kind}`", "convert the key")
            return whole.parts[1]
        case "n":
            return VOID
        case _:
            raise MismatchError(f"`{whole}` has no items in brackets", "name an array, a map or a struct")


def names_in(nodes: Sequence[exp.Expr]) -> tuple[str, ...]:
    """The names that Spark gives the fields of a struct of these values."""
    return tuple(_name(node) or f"col{place}" for place, node in enumerate(nodes, 1))


def _name(node: exp.Expr) -> str:
    match node:
        case exp.Alias():
            return str(node.alias)
        case exp.Column():
            return node.name
        case exp.Dot():
            return str(node.expression.name)
        case exp.Identifier():
            return node.name
        case _:
            return ""


def _field(struct: SqlType, name: str) -> SqlType | None:
    found = [part for own, part in zip(struct.names, struct.parts, strict=True) if own.lower() == name.lower()]
    if not found:
        known = ", ".join(struct.names)
        raise MismatchError(f"there is no field `{name}`", f"the fields are {known}")
    if len(found) > 1:
        raise MismatchError(f"there are {len(found)} fields `{name}`", "name them apart: struct(a AS one, ...)")
    return found[0]
