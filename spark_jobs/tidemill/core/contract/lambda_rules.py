"""Which lambda functions Spark's functions take, and the types of their variables."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tidemill.core.contract.operator_rules import MismatchError
from tidemill.core.contract.sql_types import VOID, SqlType, named
from tidemill.core.sql.result_lines import LAMBDAS

Types = Sequence[SqlType | None]


def variable_type(function: exp.Lambda, place: int, beside: Types) -> SqlType | None:
    """The type of a variable of a lambda function, by the types of the arguments of the function that takes it."""
    call = function.parent
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    own = next((at for at, each in enumerate(call.expressions if call is not None else ()) if each is function), 0)
    parts: list[SqlType | None]
    match name:
        case "transform" | "filter" | "exists" | "forall":
            parts = [_part(beside[0], "a", 0), named("i")]
        case "aggregate" | "reduce":
            parts = [beside[1], _part(beside[0], "a", 0) if own == 2 else None]
        case "array_sort":
            parts = [_part(beside[0], "a", 0)] * 2
        case "zip_with":
            parts = [_part(each, "a", 0) for each in beside[:2]]
        case "map_filter" | "transform_keys" | "transform_values":
            parts = [_part(beside[0], "m", 0), _part(beside[0], "m", 1)]
        case "map_zip_with":
            parts = [_part(beside[0], "m", 0), *(_part(each, "m", 1) for each in beside[:2])]
        case _:
            parts = []
    return parts[place] if place < len(parts) else None


def _part(of: SqlType | None, letter: str, at: int) -> SqlType | None:
    return of.parts[at] if of is not None and of.letter == letter else None


def check_lambdas(name: str, arguments: Sequence[exp.Expr], types: Types) -> None:
    """Check the lambda functions among the arguments of a call.

    Raises:
        MismatchError: the function takes none, or one with more or fewer variables; or it finds no items in NULL.
    """
    if types and types[0] == VOID and any(isinstance(each, exp.Lambda) for each in arguments):
        raise MismatchError(f"`{name}` finds no items in NULL", "give it an array or a map")
    for place, each in enumerate(arguments):
        if not isinstance(each, exp.Lambda):
            continue
        counts = LAMBDAS.get(name, {}).get(place)
        if counts is None:
            raise MismatchError(f"`{name}` takes no lambda function as argument {place + 1}", "give it a value")
        names = [variable.name.lower() for variable in each.expressions]
        if len(set(names)) < len(names):
            raise MismatchError("two variables of a lambda function have one name", "write (x, y) -> ...")
        if len(each.expressions) not in counts:
            wanted = " or ".join(str(count) for count in counts)
            raise MismatchError(
                f"the lambda function of `{name}` has {len(each.expressions)} variables, not {wanted}",
                "write its variables in brackets: (x, y) -> ...",
            )
