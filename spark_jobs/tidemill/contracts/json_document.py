"""Reads contracts that are written in JSON. Every value knows its line, and a repeated key is an error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidemill.contracts.document import DEEPEST, EMPTY, MOST_CHARACTERS, MOST_VALUES, Node, plain_number, whole_text
from tidemill.contracts.findings import Findings

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_LARGE = "a contract is about one topic or table: write it shorter and flatter"
_HINTS = (
    ("Extra data", "a file has one contract: remove what follows it"),
    ("Unterminated string", "close the quotes"),
    ("Invalid control character", "write \\n for the end of a line and \\t for a tab, and close the quotes"),
    ("Invalid \\escape", "write \\\\ for a backslash"),
    ("Expecting ',' delimiter", "put a comma between two values, or close the bracket that is open"),
    ("Expecting ':' delimiter", "write a colon after the key"),
)


def parse_json(text: str, findings: Findings) -> Node | None:
    """Parse a document of JSON; None if it is not JSON, or is too large."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        findings.error(1, EMPTY, fix="start from a contract of the guide, or remove the file")
        return None
    if len(text) > MOST_CHARACTERS:
        findings.error(1, f"a document has at most {MOST_CHARACTERS:,} characters", fix=_LARGE)
        return None
    tokens = list(_tokens(text))
    if (excess := _excess(tokens)) is not None:
        findings.error(excess[0], f"a document has at most {excess[1]}", fix=_LARGE)
        return None
    try:
        # Numbers stay texts here: they are read below, as in YAML.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        said = f"not JSON: {error.msg[:1].lower()}{error.msg[1:].removesuffix(' at')} at column {error.colno}"
        findings.error(error.lineno, said, fix=_hint(text, error))
        return None
    except ValueError as error:
        line = next((t.line for t in tokens if t.text == str(error)), 1)
        findings.error(line, f"not JSON: it has no number {error}", fix="write a number, or null")
        return None
    return _Reader(iter(tokens), findings).root()


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    line: int


def _tokens(text: str) -> Iterator[_Token]:
    line, before = 1, 0
    for found in _TOKEN.finditer(text):
        line += text.count("\n", before, found.start())
        before = found.start()
        yield _Token(found[0], line)


def _excess(tokens: list[_Token]) -> tuple[int, str] | None:
    """The line where a document leaves a limit, and the limit; None if it keeps them."""
    depth = 0
    for number, token in enumerate(tokens):
        depth += (token.text in ("[", "{")) - (token.text in ("]", "}"))
        if depth > DEEPEST:
            return token.line, f"{DEEPEST} levels"
        # A key, a colon, a value and a comma are the most that one value has.
        if number > 4 * MOST_VALUES:
            return token.line, f"{MOST_VALUES:,} values"
    return None


def _refuse(word: str) -> None:
    raise ValueError(word)


def _hint(text: str, error: json.JSONDecodeError) -> str:
    here, before = text[error.pos : error.pos + 1], text[: error.pos].rstrip()[-1:]
    if here == "'":
        return "JSON has double quotes only"
    if (before == "," and here in ("}", "]")) or here == ",":
        return "remove the comma"
    if here.isalpha() or here == "_":
        return "put the word in double quotes"
    return next((hint for words, hint in _HINTS if words in error.msg), "")


class _Reader:
    """Makes nodes of the tokens of a valid document."""

    def __init__(self, tokens: Iterator[_Token], findings: Findings) -> None:
        self._tokens = tokens
        self._findings = findings

    def root(self) -> Node:
        token = next(self._tokens)
        return self._node(token, token.line)

    def _node(self, token: _Token, line: int) -> Node:
        match token.text[0]:
            case "{":
                return Node(self._mapping(), line)
            case "[":
                return Node(tuple(self._items()), line)
            case '"':
                return Node(self._text(token), line)
            case _ if token.text in _WORDS:
                return Node(_WORDS[token.text], line)
            case _:
                return Node(plain_number(token.text), line)

    def _mapping(self) -> Mapping[str, Node]:
        found: dict[str, Node] = {}
        while (token := next(self._tokens)).text != "}":
            if token.text == ",":
                continue
            key = self._text(token)
            next(self._tokens)
            node = self._node(next(self._tokens), token.line)
            if key in found:
                said = f"key `{key}` stands twice, first in line {found[key].line}"
                self._findings.error(token.line, said, fix="remove one of them")
            else:
                found[key] = node
        return found

    def _items(self) -> Iterator[Node]:
        while (token := next(self._tokens)).text != "]":
            if token.text != ",":
                yield self._node(token, token.line)

    def _text(self, token: _Token) -> str:
        return whole_text(json.loads(token.text), token.line, self._findings)
