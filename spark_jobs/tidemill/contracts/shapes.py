"""Tables of the keys and values that a document may have, and a walk that compares a document with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings


class Kind(StrEnum):
    """Kinds of simple values. Errors show the text as what was expected."""

    TEXT = "text"
    FLAG = "true or false"
    WHOLE = "a whole number"
    NUMBER = "a number"
    PLAIN = "text, a number, true or false"
    MAPPING = "keys and values"
    ANY = "anything"


@dataclass(frozen=True, slots=True)
class Part:
    """A mapping whose keys are listed in the table of sections under `name`."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list whose items all have the same shape."""

    item: Shape


@dataclass(frozen=True, slots=True)
class Either:
    """One of several shapes. Whether the value is text, a list or a mapping decides which one."""

    shapes: tuple[Shape, ...]


Shape = Kind | Part | ListOf | Either


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The keys of a mapping. `since` gives the version of the standard that introduced a key."""

    title: str
    keys: Mapping[str, Shape]
    required: tuple[str, ...] = ()
    since: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Walk:
    """Compares a document with `sections`, for one `version` of the standard."""

    sections: Mapping[str, Section]
    version: str
    findings: Findings

    def check(self, node: Node, shape: Shape, title: str) -> None:
        """Note everything in `node` that does not fit the shape. Errors call the node `title`."""
        match shape:
            case Kind():
                self._check_kind(node, shape, title)
            case Part(name):
                self._check_part(node, self.sections[name], title)
            case ListOf(item):
                self._check_list(node, item, title)
            case Either(shapes):
                fitting = [s for s in shapes if _resembles(node, s)]
                self.check(node, fitting[0] if fitting else shapes[0], title)
            case _:
                assert_never(shape)

    def _check_kind(self, node: Node, kind: Kind, title: str) -> None:
        if not is_kind(node, kind):
            fix = "put it in quotes" if kind is Kind.TEXT and not isinstance(node.value, tuple | Mapping) else ""
            if kind is Kind.FLAG and isinstance(node.value, str):
                fix = "write true or false, in lower case and without quotes"
            self.findings.error(node.line, f"{title}: expected {kind}, found {shown(node)}", fix=fix)

    def _check_part(self, node: Node, section: Section, title: str) -> None:
        if not isinstance(node.value, Mapping):
            self.findings.error(node.line, f"{title}: expected the keys of {section.title}, found {shown(node)}")
            return
        for key, child in node.value.items():
            shape = section.keys.get(key)
            if shape is None:
                self._unknown(child.line, key, section)
            elif section.since.get(key, "") > self.version:
                self.findings.error(
                    child.line,
                    f"`{key}` came with ODCS {section.since[key]}, but this contract says {self.version}",
                    fix=f"write apiVersion: {section.since[key]}",
                )
            else:
                self.check(child, shape, f"`{key}`")
        for key in section.required:
            if key not in node.value:
                self.findings.error(node.line, f"{title}: `{key}` is missing; {section.title} must have it")

    def _check_list(self, node: Node, item: Shape, title: str) -> None:
        if not isinstance(node.value, tuple):
            self.findings.error(
                node.line, f"{title}: expected a list, found {shown(node)}", fix="start each item with a dash"
            )
            return
        for child in node.value:
            self.check(child, item, f"an item of {title}")

    def _unknown(self, line: int, key: str, section: Section) -> None:
        known = sorted(k for k in section.keys if section.since.get(k, "") <= self.version)
        self.findings.error(
            line,
            f"unknown key `{key}` in {section.title}; ODCS {self.version} knows {', '.join(known)}",
            fix=closest(key, known) or "an extension goes into customProperties",
        )


def is_kind(node: Node, kind: Kind) -> bool:
    """Whether the value of the node is of this kind."""
    value = node.value
    match kind:
        case Kind.TEXT:
            return isinstance(value, str)
        case Kind.FLAG:
            return isinstance(value, bool)
        case Kind.WHOLE:
            return isinstance(value, int) and not isinstance(value, bool)
        case Kind.NUMBER:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case Kind.PLAIN:
            return isinstance(value, str | int | float | bool)
        case Kind.MAPPING:
            return isinstance(value, Mapping)
        case Kind.ANY:
            return True
        case _:
            assert_never(kind)


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


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def closest(word: str, known: Iterable[str]) -> str:
    """A hint at the known word that the user probably meant; empty if none is close."""
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return f"did you mean `{by_lower[close[0]]}`?" if close else ""


def _resembles(node: Node, shape: Shape) -> bool:
    match shape:
        case Part():
            return isinstance(node.value, Mapping)
        case ListOf():
            return isinstance(node.value, tuple)
        case Kind():
            return is_kind(node, shape)
        case Either(shapes):
            return any(_resembles(node, s) for s in shapes)
        case _:
            assert_never(shape)
