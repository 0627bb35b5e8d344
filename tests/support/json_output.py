"""What commands print with `--json`, held to its description in `docs/reference/json.md`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
_ANYTHING = "as stored"
_TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "time": (str,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "list": (list,),
    "null": (type(None),),
}


@dataclass(frozen=True, slots=True)
class Key:
    """A row of a table. `optional` is the part of the path that not every object has, or empty."""

    path: str
    optional: str
    kind: str


@dataclass(frozen=True, slots=True)
class Shape:
    """A table: a kind of object that these commands print."""

    commands: tuple[str, ...]
    keys: tuple[Key, ...]


@cache
def shapes() -> tuple[Shape, ...]:
    """The tables of the page."""
    found = []
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, *tables = re.split(r"\n\n(?=\| key \|)", section)
        commands = tuple(re.findall(r"`tidemill ([a-z ]+)`", title))
        found += [Shape(commands, tuple(_keys(table))) for table in tables]
    return tuple(found)


def _keys(table: str) -> Iterator[Key]:
    for line in table.split("\n\n", maxsplit=1)[0].splitlines()[2:]:
        shown, kind, _ = (cell.strip() for cell in line.split("|")[1:-1])
        before, mark, _ = shown.strip("`").partition("?")
        yield Key(shown.strip("`").replace("?", ""), before if mark else "", kind)


def hold(words: Sequence[str], out: str) -> None:
    """Fail if a command printed an object that nothing describes."""
    known = {name for shape in shapes() for name in shape.commands}
    command = next((name for name in (" ".join(words[:2]), words[0]) if name in known), words[0])
    for line in out.splitlines():
        assert not (wrong := faults(command, json.loads(line))), (command, wrong, line)


def faults(command: str, value: Any) -> list[str]:
    """Where an object that a command printed differs from the description nearest to it; empty if it fits one."""
    found = [list(_faults(shape.keys, value, "")) for shape in shapes() if command in shape.commands]
    return min(found, key=len, default=[f"nothing describes what `{command}` prints"])


def _faults(keys: Iterable[Key], value: Any, path: str) -> Iterator[str]:
    here = [key.kind for key in keys if key.path == path]
    if _ANYTHING in here:
        return
    beneath = [key for key in keys if not path or key.path.startswith((f"{path}.", f"{path}[]"))]
    if isinstance(value, dict) and beneath:
        yield from _of_object(beneath, value, f"{path}." if path else "")
    elif isinstance(value, list) and beneath:
        for item in value:
            yield from _faults(beneath, item, f"{path}[]")
    elif not any(_is(kind, value) for text in here for kind in text.split(" or ")):
        yield f"`{path}` is {value!r}"


def _of_object(keys: Sequence[Key], value: dict[str, Any], start: str) -> Iterator[str]:
    named: dict[str, list[Key]] = {}
    for key in keys:
        named.setdefault(key.path.removeprefix(start).split(".")[0].replace("[]", ""), []).append(key)
    if named.keys() == {"*"}:
        for item in value.values():
            yield from _faults(keys, item, f"{start}*")
        return
    yield from (f"`{start}{name}` is not described" for name in value.keys() - named.keys())
    for name, under in named.items():
        if name in value:
            yield from _faults(under, value[name], start + name)
        elif all(key.optional != start + name for key in under):
            yield f"`{start}{name}` is missing"


def _is(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "time" and isinstance(value, str):
        # The watermark after the end of the input.
        return value == "end" or datetime.fromisoformat(value).tzinfo is not None
    return isinstance(value, _TYPES.get(kind, ()))
