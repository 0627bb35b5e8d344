"""Lines of bytes, and lines of JSON. The value of a record is the line without its line end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

import msgspec

from tidemill.core.errors import LogInputError
from tidemill.log.append_formats.chunks import MAX_ROW_BYTES, Rows, bad_row, too_long
from tidemill.log.append_formats.fields import FieldChoice, key_bytes, microseconds

_BLOCK = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Any bytes, split at line feeds.

    The key is the first match of `key_regex` in the line, or the first group of that match if there is one. A line
    without a match has no key.
    """

    key_regex: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLines:
    """One JSON object per line. If no field is chosen, the lines are not parsed."""

    fields: FieldChoice = field(default_factory=FieldChoice)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    first_line: int
    lines: list[bytes]
    consumed: int


def read_lines(stream: IO[bytes], name: str, source: Lines) -> Iterator[Rows]:
    """Yield the lines in order. An empty line is an empty value; the last line may lack its line feed.

    Raises:
        LogInputError: a line is longer than `MAX_ROW_BYTES`, or `key_regex` is not a valid expression.
    """
    pattern = _compiled(source.key_regex) if source.key_regex is not None else None
    for block in _blocks(stream, name):
        keys: list[bytes | None] = [None] * len(block.lines)
        if pattern is not None:
            keys = [_found(pattern, line) for line in block.lines]
        yield Rows(values=block.lines, keys=keys, times=[None] * len(block.lines), consumed=block.consumed)


_AS_IT_IS = (
    "mend or remove the line; or append every line as it is, and let the contract reject it: --format lines, and "
    "--key-regex for a key"
)


def read_json_lines(stream: IO[bytes], name: str, source: JsonLines) -> Iterator[Rows]:
    """Yield the lines in order, with key and time from their fields. A null key is no key.

    Raises:
        LogInputError: a line is not a JSON object, lacks a chosen field, or its time is not valid.
    """
    if not source.fields.names:
        yield from read_lines(stream, name, Lines())
        return
    decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
    for block in _blocks(stream, name):
        rows = Rows(consumed=block.consumed)
        for number, line in enumerate(block.lines, block.first_line):
            key, time = _key_and_time(decoder, line, number, name, source.fields)
            rows.add(line, key, time)
        yield rows


def _key_and_time(
    decoder: msgspec.json.Decoder[dict[str, msgspec.Raw]],
    line: bytes,
    number: int,
    name: str,
    fields: FieldChoice,
) -> tuple[bytes | None, int | None]:
    try:
        row = decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        what = f"expected a JSON object, found {_shown(line)} ({error})"
        raise bad_row(name, number, what, _AS_IT_IS) from error
    try:
        key = _raw_key(row[fields.key]) if fields.key is not None else None
        time = microseconds(msgspec.json.decode(row[fields.time]), fields.unit) if fields.time is not None else None
    except KeyError as missing:
        found = ", ".join(sorted(row)[:20])
        what = f"no field {missing.args[0]!r}; the object has {found}"
        fix = "name a field that every line has; null stands for a record without a key"
        raise bad_row(name, number, what, fix) from missing
    except (ValueError, msgspec.MsgspecError) as error:
        raise bad_row(name, number, f"cannot use {' and '.join(fields.names)}: {error}") from error
    return key, time


def _raw_key(raw: msgspec.Raw) -> bytes | None:
    text = bytes(raw)
    return key_bytes(msgspec.json.decode(text)) if text[:1] in (b'"', b"n") else text


def _blocks(stream: IO[bytes], name: str) -> Iterator[_Block]:
    rest, line, consumed = b"", 1, 0
    while block := stream.read(_BLOCK):
        consumed += len(block)
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        if len(rest) > MAX_ROW_BYTES:
            raise too_long(name, line + len(lines))
        yield _Block(first_line=line, lines=_without_returns(lines), consumed=consumed)
        line += len(lines)
    if rest:
        yield _Block(first_line=line, lines=_without_returns([rest]), consumed=consumed)


def _without_returns(lines: list[bytes]) -> list[bytes]:
    return [line[:-1] if line.endswith(b"\r") else line for line in lines]


def _compiled(expression: str) -> re.Pattern[bytes]:
    try:
        return re.compile(expression.encode())
    except re.error as error:
        raise LogInputError(f"--key-regex {expression!r} is no regular expression: {error}") from error


def _found(pattern: re.Pattern[bytes], line: bytes) -> bytes | None:
    match = pattern.search(line)
    if match is None:
        return None
    found: bytes | None = match[1] if pattern.groups else match[0]
    return found


def _shown(line: bytes) -> str:
    text = line[:80].decode("utf-8", "backslashreplace")
    return f"{text!r}{'...' if len(line) > 80 else ''}"
