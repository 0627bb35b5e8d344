"""Classes and functions as Markdown: their signatures, and what their docstrings (Google style) say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from datetime import timedelta
from enum import Enum
from importlib import import_module
from typing import Any

WIDTH = 88
"""The longest line of a signature."""

_SECTIONS = ("Args", "Raises", "Returns")
_SECTION = re.compile(rf"^({'|'.join(_SECTIONS)}):$", re.MULTILINE)
_ENTRY = re.compile(r"^    (?=\S)", re.MULTILINE)
_TYPES = {
    "WindowSpec": "Tumbling | Sliding | Calendar | Session",
    "Aggregate": "an aggregate",
    "Given": "dict | str | bytes | NewRecord | None",
}
"""Names of types that readers do not know, and what stands for them."""


_GIVEN = ("Stream", "KeyedStream", "WindowedStream", "AggregatedStream", "Trial")
"""Classes that users get, but do not call."""


class Undocumented(Exception):
    """An argument that no docstring explains, or an explanation of none."""


@dataclass(frozen=True)
class Docstring:
    """What a docstring says: its text, what it says of each argument, and what is raised when."""

    text: str
    arguments: dict[str, str]
    raises: dict[str, str]


def markdown(name: str, members: list[str]) -> str:
    """A class, called by its full name, and some of its methods."""
    module, _, last = name.rpartition(".")
    kind = getattr(import_module(module), last)
    parts = [_entry(last, kind, last, called=last not in _GIVEN)]
    for member in members:
        method = getattr(kind, member)
        parts.append(_entry(f"{last}.{member}", method, f".{member}", called=True))
    return "\n\n".join(parts)


def _entry(title: str, documented: Any, typed: str, *, called: bool) -> str:
    said = docstring(inspect.getdoc(documented) or "")
    parts = [f"### `{title}`"]
    if called:
        signature = inspect.signature(documented)
        arguments = [p for p in signature.parameters.values() if p.name != "self"]
        _check(title, arguments, said)
        parts += [_signature(typed, arguments, signature.return_annotation), said.text, _table(arguments, said)]
    else:
        parts.append(said.text)
    parts += [f"Raises [`{error}`](errors.md): {when}" for error, when in said.raises.items()]
    return "\n\n".join(part for part in parts if part)


def docstring(text: str) -> Docstring:
    """The parts of a docstring of Google's style."""
    head, *rest = _SECTION.split(text)
    sections = {name: dict(_entries(body)) for name, body in zip(rest[::2], rest[1::2], strict=True)}
    return Docstring(_joined(head), sections.get("Args", {}), sections.get("Raises", {}))


def _entries(body: str) -> Iterator[tuple[str, str]]:
    for entry in _ENTRY.split(body.strip("\n"))[1:]:
        name, _, text = entry.partition(":")
        yield name.lstrip("*"), re.sub(r"\s+", " ", text).strip()


def _joined(text: str) -> str:
    """Paragraphs, each in one line."""
    return "\n\n".join(re.sub(r"\s*\n", " ", paragraph) for paragraph in text.strip().split("\n\n"))


def _check(title: str, arguments: list[inspect.Parameter], said: Docstring) -> None:
    names = [argument.name for argument in arguments]
    if wrong := set(names) ^ said.arguments.keys():
        raise Undocumented(f"{title}: arguments and the section Args of its docstring differ in {sorted(wrong)}")


def _signature(typed: str, arguments: list[inspect.Parameter], returned: object) -> str:
    words, star = [], False
    for each in arguments:
        if each.kind is each.KEYWORD_ONLY and not star:
            words.append("*")
        star = star or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        words.append(f"{stars}{each.name}" + ("" if each.default is each.empty else f"={_shown(each.default)}"))
    gives = "" if returned in (inspect.Signature.empty, "None", None) else f" -> {returned}"
    line = f"{typed}({', '.join(words)}){gives}"
    if len(line) > WIDTH:
        line = f"{typed}(\n" + "".join(f"    {word},\n" for word in words) + f"){gives}"
    return f"```python\n{line}\n```"


def _table(arguments: list[inspect.Parameter], said: Docstring) -> str:
    if not arguments:
        return ""
    rows = [
        (f"`{each.name}`", f"`{_TYPES.get(str(each.annotation), each.annotation)}`", _default(each), text)
        for each in arguments
        if (text := said.arguments[each.name])
    ]
    return table(("argument", "type", "default", "what it means"), rows)


def _default(argument: inspect.Parameter) -> str:
    if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
        return "none"
    return "needed" if argument.default is argument.empty else f"`{_shown(argument.default)}`"


def _shown(value: object) -> str:
    """A default as one would write it."""
    match value:
        case Enum():
            return f'"{value.value}"'
        case timedelta() if not value:
            return '"0 seconds"'
        case str():
            return f'"{value}"'
        case _ if value is MISSING:
            return "..."
        case _:
            return repr(value)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
