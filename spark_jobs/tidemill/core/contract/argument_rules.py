"""What functions give whose arguments depend on each other, or why Spark refuses these together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidemill.core.contract.operator_rules import MismatchError, compared, together
from tidemill.core.contract.sql_types import NUMBERS, STRING, VOID, SqlType, named
from tidemill.core.sql.kinds import listed

Types = Sequence[SqlType | None]

_PLAIN, _NUMBER = "sthilfxdbDTNyYVCZkn", "sthilfxdn"


def _joined(types: Types) -> SqlType | None:
    letters = {None if each is None else each.letter for each in types}
    if "a" in letters and letters & set("n"):
        raise MismatchError("`concat` takes no NULL beside an array", "leave it out")
    if "a" in letters and letters - {None, "a"}:
        raise MismatchError("`concat` takes texts or arrays, not both", "write array(...) around the text")
    if letters == {"a"}:
        return together(types)
    return None if None in letters else named("y") if letters == {"y"} else STRING


def _reversed(types: Types) -> SqlType | None:
    if types[0] is None or types[0].letter == "a":
        return types[0]
    others = {None if each is None else each.letter for each in types[2:]} - set("thilfxd")
    if types[0].letter == "y":
        return named("y") if not others or others == {"y"} else None
    return STRING


def _hashed(types: Types) -> SqlType | None:
    if any(each is not None and _has_map(each) for each in types):
        raise MismatchError("Spark computes no hash of a map or a variant", "take what is inside of it")
    return None


def _has_map(of: SqlType) -> bool:
    return of.letter in "mk" or any(part is not None and _has_map(part) for part in of.parts)


def _overlaid(types: Types) -> SqlType | None:
    one, other = (None if each is None else each.letter for each in types[:2])
    if None in (one, other) or (one != "y" and other != "y"):
        return None if None in (one, other) else STRING
    if one != other:
        raise MismatchError(
            f"`overlay` stands between `{types[0]}` and `{types[1]}`: both are texts or both binary", ""
        )
    return named("y")


def _decoded(types: Types) -> SqlType | None:
    if len(types) == 2:
        if types[0] is not None and types[0].letter not in "syn":
            raise MismatchError(f"`decode` with two arguments reads binary, not `{types[0]}`", "leave it out")
        return STRING
    for tested in types[1 : len(types) - 1 : 2]:
        compared(types[0], tested)
    # Without a default, Spark takes a text that is null.
    results = [*types[2::2], STRING if len(types) % 2 else types[-1]]
    return together(results)


def _moment_of_parts(types: Types) -> SqlType | None:
    wanted = ["Dn", "Zn", "sn"] if len(types) <= 3 else [*([_NUMBER] * 6), _PLAIN]
    for place, (found, kinds) in enumerate(zip(types, wanted, strict=False), 1):
        if found is not None and found.letter not in kinds:
            raise MismatchError(
                f"argument {place} is {listed(kinds)}, not `{found}`", "give it year, month, day and time"
            )
    return None


def _zoned(types: Types) -> SqlType | None:
    for found, kinds in zip(types, [_PLAIN] * (len(types) - 1) + ["sDTNn"], strict=True):
        if found is not None and found.letter not in kinds:
            raise MismatchError(
                f"`convert_timezone` takes time zones and a timestamp, not `{found}`", "convert the value"
            )
    return named("N")


def _switched_off(_: Types) -> SqlType | None:
    raise MismatchError("Spark has its type TIME switched off", "use a timestamp or a text")


def _read_moment(types: Types) -> SqlType | None:
    """A timestamp of a text and a pattern, or of a value without one."""
    found, pattern = types[0], types[1] if len(types) > 1 else VOID
    if found is not None and pattern is not None and pattern != VOID and found.letter in NUMBERS:
        raise MismatchError(f"a pattern is for texts, not for `{found}`", "leave out the pattern")
    return named("T")


def _bucket(types: Types) -> SqlType | None:
    """Which of the buckets between two bounds has a value: of three numbers, or of three intervals of one kind."""
    values = [each for each in types[:3] if each is not None]
    letters = {each.letter for each in values}
    if letters & set("YV") and len(letters) > 1:
        shown = ", ".join(f"`{each}`" for each in values)
        said = f"`width_bucket` takes three numbers or three intervals of one kind, not {shown}"
        raise MismatchError(said, "give the value and both bounds one type")
    return named("l")


ARGUMENT_RULES: Mapping[str, Callable[[Types], SqlType | None]] = {
    "joined": _joined,
    "reversed": _reversed,
    "hashed": _hashed,
    "overlaid": _overlaid,
    "decoded": _decoded,
    "moment_of_parts": _moment_of_parts,
    "zoned": _zoned,
    "read_moment": _read_moment,
    "switched_off": _switched_off,
    "bucket": _bucket,
}
"""What the rules of `result_lines` say about several arguments, by their names."""
