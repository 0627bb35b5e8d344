"""Reads one line of an access log part by part. It is slow, so only unusual, cut and broken lines come here."""

from __future__ import annotations

import re

from tidemill.engine.read.decode.faults import shown, too_large

PARTS = ("client", "ident", "user", "time", "request", "status", "bytes", "referrer", "agent")
"""The parts of a line, in order."""

TEXTS = (*PARTS, "method", "path", "protocol")
"""The texts that a line is read into: its parts, and the parts of its request."""

Line = dict[str, str | None]
"""The text of each name in TEXTS; None if it is missing, is `-`, or was cut."""

_WORD = re.compile(r"([^ ]+)(?: |$)")
_QUOTED = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(?: |$)')
_LAYOUTS = {
    "time": re.compile(r"\[([^\]]*)\](?: |$)"),
    "request": _QUOTED,
    "status": re.compile(r"([0-9]{3})(?: |$)"),
    "bytes": re.compile(r"([0-9]+|-)(?: |$)"),
    "referrer": _QUOTED,
    "agent": _QUOTED,
}
_EXAMPLES = {
    "time": "[23/Mar/2014:15:07:00 -0700]",
    "request": '"GET /page HTTP/1.1"',
    "status": "three digits",
    "bytes": "a number or -",
    "referrer": "quoted text",
    "agent": "quoted text",
}
_CUT_QUOTED = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?')
_REQUEST = re.compile(r"([^ ]+) (.+?)(?: (HTTP/[0-9.]+))?")
_ESCAPING = ("request", "method", "path", "referrer", "agent")
_ESCAPE = re.compile(rb'\\(x[0-9a-fA-F]{2}|["\\bnrtv])')
_ESCAPED = {b'"': b'"', b"\\": b"\\", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def read_line(text: str) -> Line | str:
    """The texts of a line, or an error text. It does not check that the time exists.

    A line that is cut after its status is accepted. Blanks and line breaks at its end are ignored.
    """
    text = text.rstrip(" \t\r\n")
    if "\n" in text or "\r" in text:
        return "expected one line, found a line break in it"
    parts = _parts(text)
    if isinstance(parts, str):
        return parts
    line: Line = {name: None if part == "-" and name != "time" else part for name, part in parts.items()}
    size = line["bytes"]
    if size is not None and (len(size.lstrip("0")) > 19 or int(size) >= 2**63):
        return too_large("bytes", size, 64)
    request = line["request"]
    if request is not None:
        words = _REQUEST.fullmatch(request)
        if words is None:
            return mismatch("request", request)
        line |= {"method": words[1], "path": words[2], "protocol": words[3]}
    for name in _ESCAPING:
        line[name] = _unescaped(line[name])
    return line


def mismatch(name: str, found: str) -> str:
    """The error for a line whose part `name` is not as expected."""
    return f"`{name}`: expected {_EXAMPLES.get(name, 'text before a blank')}, found {shown(found)}"


def _parts(text: str) -> Line | str:
    found: Line = dict.fromkeys(TEXTS)
    at = 0
    for name in PARTS:
        after_status = PARTS.index(name) > PARTS.index("status")
        if after_status and at >= len(text):
            return found
        match = _LAYOUTS.get(name, _WORD).match(text, at)
        if match is None:
            return found if after_status and _is_cut(name, text, at) else mismatch(name, text[at:])
        found[name] = match[1]
        at = match.end()
    if at < len(text):
        return f"expected the end of the line after `agent`, found {shown(text[at:])}"
    return found


def _is_cut(name: str, text: str, at: int) -> bool:
    return name != "bytes" and _CUT_QUOTED.fullmatch(text, at) is not None


def _unescaped(text: str | None) -> str | None:
    if text is None or "\\" not in text:
        return text
    try:
        return _ESCAPE.sub(_character, text.encode()).decode()
    except UnicodeDecodeError:
        return text


def _character(match: re.Match[bytes]) -> bytes:
    code: bytes = match[1]
    return bytes.fromhex(code[1:].decode()) if code.startswith(b"x") else _ESCAPED[code]
