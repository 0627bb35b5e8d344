"""Reads YAML as it is written, without YAML 1.1's guesses. Every value knows its line.

Only `true` and `false` are booleans: `no`, `off`, `on`, `yes` and `True` stay text. Dates, sexagesimal numbers, and
numbers with underscores or leading zeros stay text too. A repeated key is an error.

The length, the depth and the number of values of a document are limited, and repeated aliases count. So code that reads
a document needs no limits of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from tidemill.contracts.findings import Findings
from tidemill.contracts.yaml_faults import as_utf_8, encoding_of, place_and_hint
from tidemill.core.contract.long_number import number_of

Value = str | int | float | bool | None | tuple["Node", ...] | Mapping[str, "Node"]

EMPTY = "the document is empty"
"""What is found in a file without a document."""

_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_LONGEST = 500
_TAG = re.compile(r"(&\S+\s+)?!")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][-+]?[0-9]+)?")
MOST_CHARACTERS, MOST_VALUES, DEEPEST = 500_000, 50_000, 100
"""The limits of a document."""

_SPARE, _SNIFFED = 1_000, 1_000


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a document and its line. For a value with a key, it is the line of the key."""

    value: Value
    line: int

    def child(self, key: str) -> Node | None:
        """Return the value of a key; None if the key is missing or this node is not a mapping."""
        return self.value.get(key) if isinstance(self.value, Mapping) else None

    def text(self, key: str) -> str:
        """Return the text of a key; empty if it is missing or not text."""
        child = self.child(key)
        return child.value if child is not None and isinstance(child.value, str) else ""

    def items(self, key: str) -> tuple[Node, ...]:
        """Return the items of a key; empty if it is missing or not a list."""
        child = self.child(key)
        return child.value if child is not None and isinstance(child.value, tuple) else ()

    def is_true(self, key: str) -> bool:
        """Whether the value of a key is `true`."""
        child = self.child(key)
        return child is not None and child.value is True


def read(path: Path, findings: Findings) -> Node | None:
    """Read the document in a file; None if it cannot be read. Faults go to `findings`."""
    try:
        if path.is_fifo() and not path.is_relative_to("/dev"):
            findings.error(1, "it is a pipe, and no file", fix="give - and send the contract to standard input")
            return None
        with path.open(encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)
        if encoding := encoding_of(text[:_SNIFFED].encode()):
            findings.error(1, f"not UTF-8: it is {encoding}", fix=as_utf_8(encoding))
            return None
    except FileNotFoundError:
        said = "it is a link to a file that is not there" if path.is_symlink() else "there is no such file"
        findings.error(1, said, fix="give the path of a *.odcs.yaml file")
    except IsADirectoryError:
        findings.error(1, "it is a folder, and is called like a contract", fix="rename the folder")
    except UnicodeDecodeError as error:
        line = bytes(error.object[: error.start]).count(b"\n") + 1
        encoding = encoding_of(bytes(error.object[:_SNIFFED]))
        said = f"it is {encoding}" if encoding else f"{error.reason} at byte {error.start}"
        findings.error(line, f"not UTF-8: {said}", fix=as_utf_8(encoding))
    except OSError as error:
        findings.error(1, f"cannot be read: {error.strerror}")
    else:
        return _of_json(text, findings) if path.suffix.lower() == ".json" else parse(text, findings)
    return None


def _of_json(text: str, findings: Findings) -> Node | None:
    # Imported late: it makes nodes of this module.
    from tidemill.contracts.json_document import parse_json  # noqa: PLC0415

    return parse_json(text, findings)


def parse(text: str, findings: Findings, *, first_line: int = 1) -> Node | None:
    """Parse a document whose first line is `first_line` of its file; None if it is not valid YAML or is too large."""
    try:
        if len(text) > MOST_CHARACTERS:
            raise _TooMuch(0, f"{MOST_CHARACTERS:,} characters")
        root = _composed(text)
        if root is not None:
            return _Reader(text, findings, first_line).node(root, root.start_mark.line + first_line, frozenset())
        findings.error(first_line, EMPTY, fix="start from a contract of the guide, or remove the file")
    except _TooMuch as error:
        fix = "a contract is about one topic or table: write it shorter and flatter, without aliases"
        findings.error(error.line + first_line, f"a document has at most {error}", fix=fix)
    except _Circle as error:
        # Whatever else could be said of a value without an end is about the same fault.
        findings.error(error.line + first_line, str(error), fix=error.fix)
    except _Wrong as error:
        findings.error(error.line + first_line, f"not YAML: {error}", fix=error.fix)
    return None


class _Wrong(Exception):
    """The text is not valid YAML; `line` counts from 0."""

    def __init__(self, line: int, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.line = line
        self.fix = fix


class _Circle(_Wrong):
    """A value is a part of itself."""


class _TooMuch(_Wrong):
    """The text is larger than any contract needs to be."""


def _composed(text: str) -> yaml.Node | None:
    loader = None
    try:
        loader = _Loader(text)
        return loader.get_single_node()
    except _TooMuch:
        raise
    except yaml.MarkedYAMLError as error:
        raise _Wrong(*place_and_hint(text, error)) from None
    except yaml.reader.ReaderError as error:
        raise _Wrong(text.count("\n", 0, error.position), str(error).splitlines()[0]) from None
    # The parser lets some errors of Python through: a character beyond Unicode raises OverflowError.
    except Exception as error:
        raise _Wrong(loader.line if loader else 0, f"{type(error).__name__}: {error}") from None


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """The YAML parser with limits: it calls itself for every level."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._values = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        """Compose the next value and everything inside it."""
        self._depth, self._values = self._depth + 1, self._values + 1
        _check_bounds(self.peek_event().start_mark.line, self._depth, self._values)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _check_bounds(line: int, depth: int, values: int, most: int = MOST_VALUES) -> None:
    if depth > DEEPEST:
        raise _TooMuch(line, f"{DEEPEST} levels")
    if values > most:
        length = "" if most == MOST_VALUES else " if it is as short as this one"
        raise _TooMuch(line, f"{most:,} values{length}, aliases counted as what they stand for")


class _Reader:
    def __init__(self, text: str, findings: Findings, first_line: int) -> None:
        self.text = text
        self.findings = findings
        self.first_line = first_line
        self._values = 0

    def node(self, raw: yaml.Node, line: int, above: frozenset[int]) -> Node:
        self._values += 1
        # A text of this length cannot have more values unless it uses aliases.
        most = min(MOST_VALUES, len(self.text) + _SPARE)
        _check_bounds(line - self.first_line, len(above) + 1, self._values, most)
        if id(raw) in above:
            raise _Circle(line - self.first_line, "an alias refers to what it stands in", "write the value out")
        if _TAG.match(self.text, raw.start_mark.index):
            self.findings.error(line, f"tag `{raw.tag}` is not understood", fix="remove the tag; quotes make text")
        if isinstance(raw, yaml.MappingNode):
            return Node(self._mapping(raw, above | {id(raw)}), line)
        if isinstance(raw, yaml.SequenceNode):
            inner = above | {id(raw)}
            return Node(tuple(self.node(item, self._line(item), inner) for item in raw.value), line)
        return Node(self._scalar(raw, line), line)

    def _mapping(self, raw: yaml.MappingNode, above: frozenset[int]) -> Mapping[str, Node]:
        found: dict[str, Node] = {}
        for raw_key, raw_value in raw.value:
            line = self._line(raw_key)
            key = raw_key.value if isinstance(raw_key, yaml.ScalarNode) else None
            if not isinstance(key, str):
                self.findings.error(line, "a key must be a word", fix="put the key in one line, without brackets")
            elif key in found:
                self.findings.error(
                    line, f"key `{key}` stands twice, first in line {found[key].line}", fix="remove one of them"
                )
            else:
                found[whole_text(key, line, self.findings)] = self.node(raw_value, line, above)
        return found

    def _scalar(self, raw: yaml.Node, line: int) -> str | int | float | bool | None:
        text = whole_text(str(raw.value), line, self.findings)
        if raw.style is not None:
            return text
        return _WORDS[text] if text in _WORDS else plain_number(text)

    def _line(self, raw: yaml.Node) -> int:
        return int(raw.start_mark.line) + self.first_line


def whole_text(text: str, line: int, findings: Findings) -> str:
    """The text without halves of characters, which are noted."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        findings.error(
            line,
            f"`\\u{ord(text[error.start]):x}` is half a character",
            fix="write the character itself, or \\U and its eight digits",
        )
        return text.encode(errors="replace").decode()
    return text


def plain_number(text: str) -> str | int | float:
    """The number that a text without quotes is; the text itself if it is none, or is longer than any number."""
    if len(text) > _LONGEST:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and any(c.isdigit() for c in re.split("[eE]", text)[0]):
        number = number_of(text)
        return text if number is None else number
    return text
