"""Kinds of values in a document, and how errors show them."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping

from tidemill.contracts.document import Node
from tidemill.core.contract.long_number import LongNumber

_PLAIN = re.compile(r"[A-Za-z][\w-]*")
_NUMBER = re.compile(r"-?[0-9]{1,38}(\.[0-9]{1,38})?")


def is_flag(node: Node) -> bool:
    """Whether the value is true or false."""
    return isinstance(node.value, bool)


def is_whole(node: Node) -> bool:
    """Whether the value is a whole number."""
    return isinstance(node.value, int) and not isinstance(node.value, bool)


def is_number(node: Node) -> bool:
    """Whether the value is a number."""
    return isinstance(node.value, int | float) and not isinstance(node.value, bool)


def plain(node: Node) -> object:
    """The value without its lines."""
    match node.value:
        case Mapping() as mapping:
            return {key: plain(child) for key, child in mapping.items()}
        case tuple() as items:
            return [plain(item) for item in items]
        case value:
            return value


def shown(node: Node | None) -> str:
    """Describe a value for an error: the value and its kind."""
    if node is None:
        return "nothing"
    match node.value:
        case None:
            return "nothing"
        case bool():
            return str(node.value).lower()
        case int() | float():
            return f"the number {_short(str(node.value))}"
        case str():
            return f"the text {_short(node.value)!r}"
        case tuple():
            return "a list"
        case _:
            return "keys and values"


def written(node: Node) -> str:
    """A text, number or flag as YAML has it; three dots for anything else."""
    match node.value:
        case str() as text if _PLAIN.fullmatch(text) and text not in ("true", "false", "null"):
            return text
        case LongNumber() as number:
            return str(number)
        case str() | bool() | int() | float() as value:
            return json.dumps(value, ensure_ascii=False)
        case _:
            return "..."


def without_quotes(node: Node) -> str:
    """A hint at the number that is meant if the value is a text, such as a number in quotes; otherwise empty."""
    if not isinstance(node.value, str):
        return ""
    number = node.value.replace("_", "")
    digits = number.removeprefix("-")
    if digits.isascii() and digits.isdigit() and (number != node.value or (digits.startswith("0") and len(digits) > 1)):
        wrong = "underscores" if number != node.value else "leading zeros"
        return f"remove the {wrong}: {int(number[:39])}"
    return f"remove the quotes: {node.value}" if _NUMBER.fullmatch(node.value) else ""


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def closest(word: str, known: Iterable[str]) -> str:
    """A hint at the known word that the user probably meant; empty if none is close.

    A word of another length is only meant where one begins with the other: `sec` is no slip of `parsec`.
    """
    by_lower, lower = {k.lower(): k for k in known}, word.lower()
    for near in difflib.get_close_matches(lower, by_lower):
        longer = max(len(near), len(lower))
        if 3 * abs(len(near) - len(lower)) <= longer or near.startswith(lower) or lower.startswith(near):
            return f"did you mean `{by_lower[near]}`?"
    return ""
