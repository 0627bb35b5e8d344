"""What Spark's functions give for arguments of known types, or why Spark refuses them, beyond single arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from tidemill.core.contract.argument_rules import ARGUMENT_RULES
from tidemill.core.contract.collation_rules import collate_called
from tidemill.core.contract.constant_texts import written_text
from tidemill.core.contract.lambda_rules import check_lambdas
from tidemill.core.contract.moment_parts import part_of_moment
from tidemill.core.contract.nested_rules import NESTED_RULES
from tidemill.core.contract.operator_rules import (
    MismatchError,
    check_order,
    compared,
    operated,
    together,
)
from tidemill.core.contract.sql_types import BOOLEAN, STRING, SqlType, Texts, array_of, named
from tidemill.core.contract.type_paths import names_in
from tidemill.core.sql.function_signatures import SIGNATURES, WORDS
from tidemill.core.sql.kinds import KINDS
from tidemill.core.sql.result_lines import OPTIONS_AT, RESULT_LINES

Types = Sequence[SqlType | None]
Rule = Callable[[Types], SqlType | None]

_PARTS = ("date_part", "datepart")
_BY_NAME = {name: letter for letter, name in KINDS.items()}


def _rules_of_functions() -> dict[str, str]:
    lines = RESULT_LINES.strip().replace("\n    ", " ").splitlines()
    split = [line.partition(": ") for line in lines]
    return {name: rule for rule, _, names in split for name in names.split()}


_RULE_OF = _rules_of_functions()


def called(node: exp.Anonymous, types: Types) -> SqlType | None:
    """What a call gives; None if it is not certain, or if an argument is of a kind that the function does not take.

    Raises:
        MismatchError: Spark refuses the arguments together.
    """
    name = node.name.lower()
    check_lambdas(name, node.expressions, types)
    _check_options(name, types)
    if name == "collate" and len(types) == len(node.expressions) == 2:
        return collate_called(node.expressions[1], types)
    is_part = name in _PARTS and len(types) == len(node.expressions) == 2
    if is_part and (field := written_text(node.expressions[0])) is not None:
        return part_of_moment(field, types[1])
    signature = SIGNATURES.get(name)
    if signature is not None and any(
        found is not None and found.letter in KINDS and found.letter not in WORDS[signature.word(place)].letters
        for place, found in enumerate(types)
        if signature.takes(len(types))
    ):
        return None
    rule = _RULE_OF.get(name, signature.gives if signature is not None else "-")
    if rule in ("fields", "named_fields"):
        return _struct(rule, node.expressions, types)
    if rule in _BY_NAME:
        return named(_BY_NAME[rule])
    found = RULES.get(rule)
    try:
        return found(types) if found is not None else None
    except IndexError:
        # Too few arguments are told elsewhere.
        return None


def _check_options(name: str, types: Types) -> None:
    """Check that options are a map of texts."""
    place = OPTIONS_AT.get(name, len(types))
    found = types[place] if place < len(types) else None
    if (
        found is not None
        and found.letter == "m"
        and any(part is not None and part.letter not in "sn" for part in found.parts)
    ):
        raise MismatchError(f"the options of `{name}` are a map of texts, not `{found}`", "write map('key', 'value')")


def _struct(rule: str, arguments: Sequence[exp.Expr], types: Types) -> SqlType | None:
    if rule == "fields":
        return SqlType("struct", tuple(types), names_in(arguments))
    names, values = arguments[::2], types[1::2]
    kinds = [found for found in types[::2] if found is not None and found.letter != "s"]
    if len(arguments) % 2 or kinds or any(name.find(exp.Column, exp.Identifier) for name in names):
        raise MismatchError("`named_struct` takes names with their values; a name is a text", "write 'name', value")
    if not all(isinstance(name, exp.Literal) for name in names):
        return None
    return SqlType("struct", tuple(values), tuple(name.name for name in names))


def _numeric(found: SqlType | None) -> SqlType | None:
    return named("x") if found is not None and found.letter in "sn" else found


def _rounded(types: Types) -> SqlType | None:
    return _numeric(types[0])


def _whole(types: Types) -> SqlType | None:
    if types[0] is None:
        return None
    return named("d" if types[0].letter == "d" or len(types) > 1 else "l")


def _greatest(types: Types) -> SqlType | None:
    found = together(types, Texts.NOWHERE)
    check_order([found])
    return found


def _compared(types: Types) -> SqlType | None:
    compared(types[0], types[1])
    return BOOLEAN


def _first_compared(types: Types) -> SqlType | None:
    compared(types[0], types[1])
    return types[0]


def _ordered(types: Types) -> SqlType | None:
    check_order(types[:1])
    return types[0]


def _summed(types: Types) -> SqlType | None:
    found = types[0]
    if found is None:
        return None
    return named("l") if found.letter in "thil" else found if found.letter in "dYV" else named("x")


def _averaged(types: Types) -> SqlType | None:
    found = types[0]
    if found is None or found.letter == "d":
        return None
    return named(found.letter if found.letter in "YV" else "x")


def _shifted(types: Types) -> SqlType | None:
    return operated("<<", types[0], types[1])


RULES: Mapping[str, Rule] = {
    **NESTED_RULES,
    **ARGUMENT_RULES,
    "texts": lambda _: array_of(STRING),
    "same": lambda types: types[0],
    "same_ordered": _ordered,
    "quantity": lambda types: _numeric(types[0]),
    "rounded": _rounded,
    "whole": _whole,
    "common": together,
    "branches": lambda types: together(types[1:]),
    "greatest": _greatest,
    "compared": _compared,
    "first_compared": _first_compared,
    "added": lambda types: operated("+", types[0], types[1]),
    "subtracted": lambda types: operated("-", types[0], types[1]),
    "multiplied": lambda types: operated("*", types[0], types[1]),
    "divided": lambda types: operated("/", types[0], types[1]),
    "remainder": lambda types: operated("%", types[0], types[1]),
    "shifted": _shifted,
    "summed": _summed,
    "averaged": _averaged,
}
"""What the rules of `result_lines` say, by their names."""
