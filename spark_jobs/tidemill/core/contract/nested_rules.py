"""What Spark's functions of arrays and maps give, or why Spark refuses their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidemill.core.contract.joined_types import joined
from tidemill.core.contract.map_rules import MAP_RULES, inside, is_asked
from tidemill.core.contract.operator_rules import MismatchError, check_order, together
from tidemill.core.contract.sql_types import BOOLEAN, STRING, VOID, SqlType, array_of, is_alike, named

Types = Sequence[SqlType | None]

_INDEXES = "thi"


def _with_item(types: Types, place: int = 1) -> SqlType | None:
    """An array of the one type of its items and a further one."""
    return array_of(joined([inside(types[0]), types[place]]))


def _look_for(types: Types) -> None:
    """Look for a value among the items."""
    check_order([joined([inside(types[0]), types[1]])])


def _contains(types: Types) -> SqlType | None:
    is_asked(types[1])
    _look_for(types)
    return BOOLEAN


def _place(types: Types) -> SqlType | None:
    _look_for(types)
    return named("l")


def _without_item(types: Types) -> SqlType | None:
    _look_for(types)
    return _with_item(types)


def _united(types: Types) -> SqlType | None:
    if types[0] is None or types[1] is None:
        return None
    one = joined(types[:2])
    check_order([one])
    return one


def _overlap(types: Types) -> SqlType | None:
    _united(types)
    return BOOLEAN


def _item(types: Types) -> SqlType | None:
    whole, key = types[0], types[1]
    if whole is None or whole.letter not in "am":
        return None
    if whole.letter == "m":
        joined([whole.parts[0], key])
        return whole.parts[1]
    return whole.parts[0]


def _element(types: Types) -> SqlType | None:
    whole, key = types[0], types[1]
    if whole is not None and whole.letter == "a" and key is not None and key.letter not in _INDEXES:
        raise MismatchError(f"the place of an item is an int, not `{key}`", "write cast(... AS INT), or use get")
    return _item(types)


def _placed(types: Types) -> SqlType | None:
    if types[1] is not None and types[1].letter not in _INDEXES:
        raise MismatchError(f"the place of an item is an int, not `{types[1]}`", "write cast(... AS INT)")
    return _with_item(types, 2)


def _as_array(types: Types) -> SqlType | None:
    """The array itself; Spark takes a NULL as an array of nothing."""
    return array_of(VOID) if types[0] == VOID else types[0]


def _ordered_array(types: Types) -> SqlType | None:
    check_order(types[:1])
    return _as_array(types)


def _as_texts(types: Types) -> SqlType | None:
    for each in types:
        _check_items(each)
    return STRING


def _check_items(array: SqlType | None) -> None:
    """Check that items of an array become texts."""
    item = inside(array) if array is not None and array.letter == "a" else None
    if item is not None and item.letter in "amo":
        raise MismatchError(f"texts are joined, not items of type `{item}`", "take fields of the items")


def _extreme(types: Types) -> SqlType | None:
    check_order(types[:1])
    return inside(types[0])


def _flat(types: Types) -> SqlType | None:
    inner = inside(types[0])
    if types[0] == VOID or (inner is not None and inner.letter != "a"):
        raise MismatchError(f"`flatten` takes an array of arrays, not `{types[0]}`", "leave out flatten")
    return inner


def _condition(types: Types) -> SqlType | None:
    _is_true(types)
    return BOOLEAN


def _filtered(types: Types) -> SqlType | None:
    _is_true(types)
    return _as_array(types)


def _is_true(types: Types) -> None:
    if types[1] is not None and types[1].letter not in "bn":
        raise MismatchError(f"the lambda function gives a boolean, not `{types[1]}`", "compare it with a value")


def _folded(types: Types) -> SqlType | None:
    start, merged = types[1], types[2]
    if start is not None and merged is not None and not (is_alike(start, merged) or merged.letter == "n"):
        raise MismatchError(
            f"the value to begin with is `{start}`, but the lambda function gives `{merged}`",
            f"write cast(... AS {merged}) around the value to begin with",
        )
    return types[3] if len(types) > 3 else start


def _sorted(types: Types) -> SqlType | None:
    if types[0] == VOID and types[-1] == VOID:
        raise MismatchError("`array_sort` takes an array, not NULL", "give it an array")
    if len(types) == 1:
        check_order(types)
    elif types[1] is not None and types[1].letter not in "in":
        raise MismatchError(f"the lambda function of `array_sort` gives an int, not `{types[1]}`", "give -1, 0 or 1")
    return _as_array(types)


def _range(types: Types) -> SqlType | None:
    """An array from a value to another one: of integers by integers, of moments by intervals."""
    ends = together([each for each in types[:2] if each is None or each.letter not in "YV"])
    step = types[2] if len(types) > 2 else None
    by_interval = step is not None and step.letter in "YVC"
    if ends is not None and ends.letter in "DTN" and all(each and each.letter not in "YV" for each in types[:2]):
        if step is not None and not by_interval:
            raise MismatchError(f"`sequence` over `{ends}` makes no steps of type `{step}`", "write interval 1 day")
        return array_of(ends)
    counted = [each for each in types if each is None or each.letter not in "YVC"]
    one = together(counted)
    # Beside integers of different types, Spark converts an interval to the one type of these.
    alone = len(counted) < len(types) - by_interval and len(set(counted)) == 1
    if one is not None and (by_interval or alone or one.letter not in "thil"):
        over = " and ".join(f"`{each}`" for each in types)
        said = "`sequence` goes from integer to integer by integers, or from date to date by intervals"
        raise MismatchError(f"{said}, not over {over}", "convert the values")
    return array_of(one)


NESTED_RULES: Mapping[str, Callable[[Types], SqlType | None]] = {
    **MAP_RULES,
    "items": lambda types: array_of(together(types)),
    "repeated": lambda types: array_of(types[0]),
    "item": _item,
    "element": _element,
    "extreme": _extreme,
    "with_item": _with_item,
    "with_placed_item": _placed,
    "place": _place,
    "contains": _contains,
    "without_item": _without_item,
    "united": _united,
    "overlap": _overlap,
    "flat": _flat,
    "condition": _condition,
    "filtered": _filtered,
    "sorted": _sorted,
    "mapped": lambda types: array_of(types[1]),
    "zipped": lambda types: array_of(types[2]),
    "folded": _folded,
    "same_array": _as_array,
    "same_ordered_array": _ordered_array,
    "texts_or_arrays": lambda types: _as_texts(types[1:]),
    "items_as_texts": lambda types: _as_texts(types[:1]),
    "range": _range,
}
"""What the rules of `result_lines` say about arrays and maps, by their names."""
