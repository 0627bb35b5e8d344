"""Decoders as plain as they can be, one record and one character at a time: what the fast ones are held against.

`slow_decode` answers a dictionary of Python values for a good record and None for a bad one.
"""

from __future__ import annotations

import datetime as dt
import json
import re

from engine.decode.slow_values import Bad, base64_bytes, iso_time, scalar
from tidemill.core.contract.contract import Contract, ExtraFields, Format
from tidemill.core.contract.schema import Array, Decimal, Field, Object, Scalar


class Digits(str):
    """A number token of JSON."""


class Pairs(list):
    """An object of JSON, with fields that occur twice."""


def slow_decode(contract: Contract, value: bytes | None) -> dict[str, object] | None:
    readers = {
        Format.JSON: json_row,
        Format.CSV: csv_row,
        Format.ACCESS_LOG: access_row,
        Format.TEXT: lambda c, text: {c.columns[0]: text},
    }
    if value is None or (not value and contract.format is not Format.TEXT):
        return None
    try:
        return readers[contract.format](contract, value.decode())
    except (Bad, UnicodeDecodeError):
        return None


def json_row(contract: Contract, text: str) -> dict[str, object]:
    if depth(text) > 128:
        raise Bad
    try:
        value = json.loads(text, object_pairs_hook=Pairs, parse_int=Digits, parse_float=Digits, parse_constant=refuse)
    except ValueError as error:
        raise Bad from error
    no_surrogates(value)
    if not isinstance(value, Pairs):
        raise Bad
    keep = contract.extra_fields is ExtraFields.KEEP
    row = members(value, contract.fields, contract, keep)
    if keep:
        last = dict(value)
        names = {f.name: f.type for f in contract.fields}
        kept = {n: plain(v) for n, v in sorted(last.items()) if n not in names or holds_unknown(v, names[n])}
        row["_extra"] = kept or None
    return row


def refuse(_: str) -> None:
    raise Bad


def depth(text: str) -> int:
    deepest = level = 0
    quoted = escaped = False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "[{":
            level += 1
            deepest = max(deepest, level)
        elif character in "]}":
            level -= 1
    return deepest


def no_surrogates(value: object) -> None:
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        raise Bad
    if isinstance(value, list):
        for item in value:
            for part in item if isinstance(value, Pairs) else [item]:
                no_surrogates(part)


def plain(value: object) -> object:
    if isinstance(value, Pairs):
        return {name: plain(v) for name, v in value}
    return [plain(v) for v in value] if isinstance(value, list) else value


def members(pairs: Pairs, fields: tuple[Field, ...], contract: Contract, keep: bool) -> dict[str, object]:
    known = {f.name: f for f in fields}
    row: dict[str, object] = dict.fromkeys(known)
    for name, value in pairs:
        if name in known:
            row[name] = shaped(value, known[name], contract, keep)
        elif not keep:
            raise Bad
    # Only the last of several values must be a time or a decimal that exists.
    row = {n: finished(v, known[n].type, contract) for n, v in row.items()}
    if any(f.required and row[f.name] is None for f in fields):
        raise Bad
    return row


def holds_unknown(value: object, kind: object) -> bool:
    match kind, value:
        case Object(fields), Pairs():
            types = {f.name: f.type for f in fields}
            return any(n not in types or holds_unknown(v, types[n]) for n, v in value)
        case Array(item), list():
            return any(holds_unknown(v, item) for v in value)
    return False


def shaped(value: object, field: Field, contract: Contract, keep: bool) -> object:
    """The value, if it is of a JSON type that the field may have."""
    raw_time = field.type is Scalar.TIMESTAMP and contract.options.get("timestamp", "iso") != "iso"
    if isinstance(field.type, Decimal) or raw_time:
        return value
    if value is None:
        if field.required:
            raise Bad
        return None
    number, text = isinstance(value, Digits), isinstance(value, str) and not isinstance(value, Digits)
    match field.type:
        case Array(item) if isinstance(value, list) and not isinstance(value, Pairs):
            return [shaped(v, Field(name="", type=item), contract, keep) for v in value]
        case Object(fields) if isinstance(value, Pairs):
            return members(value, fields, contract, keep)
        case Scalar.STRING | Scalar.DATE | Scalar.TIMESTAMP if text:
            return value
        case Scalar.BOOLEAN if isinstance(value, bool):
            return value
        case Scalar.INTEGER | Scalar.LONG | Scalar.DOUBLE if number:
            return scalar(value, field.type, "iso")
        case Scalar.BINARY if text:
            return base64_bytes(value)
    raise Bad


def finished(value: object, kind: object, contract: Contract) -> object:
    unit = contract.options.get("timestamp", "iso")
    match kind:
        case Array(item):
            return None if value is None else [finished(v, item, contract) for v in value]
        case Scalar.DATE | Scalar.TIMESTAMP | Decimal() if value is not None:
            if not isinstance(value, str) or (unit != "iso" and kind is Scalar.TIMESTAMP and type(value) is str):
                raise Bad
            return scalar(value, kind, unit)
    return value


def csv_row(contract: Contract, text: str) -> dict[str, object]:
    delimiter, null = contract.options.get("delimiter", ","), contract.options.get("null", "")
    fields = csv_fields(re.sub("\r?\n\\Z", "", text), delimiter)
    if len(fields) != len(contract.fields):
        raise Bad
    row: dict[str, object] = {}
    for field, (value, quoted) in zip(contract.fields, fields, strict=True):
        if not quoted and value == null:
            if field.required:
                raise Bad
            row[field.name] = None
        else:
            row[field.name] = scalar(value, field.type, contract.options.get("timestamp", "iso"))
    return row


def csv_fields(text: str, delimiter: str) -> list[tuple[str, bool]]:
    if not text:
        raise Bad
    fields: list[tuple[str, bool]] = []
    at = 0
    while True:
        if text[at : at + 1] == '"':
            value, at = "", at + 1
            while text[at : at + 2] == '""' or text[at : at + 1] not in ('"', ""):
                value, at = value + text[at], at + (2 if text[at] == '"' else 1)
            if at >= len(text):
                raise Bad
            at += 1
            fields.append((value, True))
        else:
            value = re.match(f'[^"\r\n{re.escape(delimiter)}]*', text[at:])[0]
            at += len(value)
            fields.append((value, False))
        if at == len(text):
            return fields
        if text[at] != delimiter:
            raise Bad
        at += 1


class Cursor:
    """Reads a line of an access log from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text

    def ended(self) -> bool:
        return not self.text

    def advance(self, length: int) -> None:
        if self.text[length : length + 1] not in (" ", ""):
            raise Bad
        self.text = self.text[length + 1 :]

    def word(self, pattern: str = "[^ ]+") -> str:
        match = re.match(pattern, self.text)
        if not match:
            raise Bad
        self.advance(match.end())
        return match[0]

    def quoted(self) -> str | None:
        """What is between quotes; None when the line ends before the closing one."""
        if not self.text.startswith('"'):
            raise Bad
        at = 1
        while self.text[at : at + 1] not in ('"', ""):
            at += 2 if self.text[at] == "\\" else 1
        if at >= len(self.text):
            self.text = ""
            return None
        value = self.text[1:at]
        self.advance(at + 1)
        return value


def access_row(contract: Contract, text: str) -> dict[str, object]:
    text = text.rstrip(" \t\r\n")
    if "\n" in text or "\r" in text or not text:
        raise Bad
    line = Cursor(text)
    row: dict[str, object] = {n: nothing(line.word()) for n in ("client", "ident", "user")}
    row["ts"] = log_time(line.word(r"\[[^]]*\]"))
    row["request"] = line.quoted()
    if row["request"] is None:
        raise Bad
    row["status"] = int(line.word("[0-9]{3}(?= |$)"))
    size = None if line.ended() else nothing(line.word("([0-9]+|-)(?= |$)"))
    row["bytes"] = None if size is None else scalar(size, Scalar.LONG, "iso")
    for name in ("referrer", "agent"):
        row[name] = None if line.ended() else nothing(line.quoted())
    if not line.ended():
        raise Bad
    row |= request_parts(nothing(row["request"]))
    for name in ("request", "method", "path", "referrer", "agent"):
        row[name] = unescaped(row[name])
    if any(f.required and row[f.name] is None for f in contract.fields):
        raise Bad
    return {n: row[n] for n in contract.columns}


def nothing(text: str | None) -> str | None:
    return None if text == "-" else text


def request_parts(request: str | None) -> dict[str, str | None]:
    if request is None:
        return dict.fromkeys(("request", "method", "path", "protocol"))
    method, blank, rest = request.partition(" ")
    path, _, protocol = rest.rpartition(" ")
    if not path or not re.fullmatch(r"HTTP/[0-9.]+", protocol):
        path, protocol = rest, None
    if not method or not blank or not path:
        raise Bad
    return {"request": request, "method": method, "path": path, "protocol": protocol}


def log_time(text: str) -> dt.datetime:
    match = re.fullmatch(r"\[([0-9]{2})/([A-Z][a-z]{2})/([0-9]{4}):([0-9:]{8}) ([+-])([0-9]{2})([0-9]{2})\]", text)
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    if not match or match[2] not in names:
        raise Bad
    month = names.index(match[2]) + 1
    return iso_time(f"{match[3]}-{month:02}-{match[1]} {match[4]}{match[5]}{match[6]}:{match[7]}")


def unescaped(text: str | None) -> str | None:
    known = {"b": 8, "t": 9, "n": 10, "v": 11, "r": 13, '"': 34, "\\": 92}
    if text is None:
        return None
    out, at = bytearray(), 0
    while at < len(text):
        if text[at] == "\\" and re.match("x[0-9a-fA-F]{2}", text[at + 1 :]):
            out.append(int(text[at + 2 : at + 4], 16))
            at += 4
        elif text[at] == "\\" and text[at + 1 : at + 2] in known:
            out.append(known[text[at + 1]])
            at += 2
        else:
            out += text[at].encode()
            at += 1
    try:
        return out.decode()
    except UnicodeDecodeError:
        return text
