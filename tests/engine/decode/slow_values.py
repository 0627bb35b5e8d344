"""Values written as text, read as plainly as can be, one character at a time."""

from __future__ import annotations

import base64
import datetime as dt
import math
import re
from decimal import Decimal as Number
from decimal import DecimalException

from tidemill.core.contract.schema import Decimal, Scalar

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001
UNITS = {"epoch_s": 6, "epoch_ms": 3, "epoch_us": 0}


class Bad(Exception):
    """The record is not good."""


def base64_bytes(text: str) -> bytes:
    if not re.fullmatch(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", text):
        raise Bad
    return base64.b64decode(text)


def scalar(text: str, kind: object, unit: str) -> object:
    """A value written as text."""
    match kind:
        case Scalar.STRING:
            return text
        case Scalar.BOOLEAN if text.lower() in ("true", "false") and text.isascii():
            return text.lower() == "true"
        case Scalar.INTEGER | Scalar.LONG if re.fullmatch("[+-]?[0-9]+", text):
            limit = 2**31 if kind is Scalar.INTEGER else 2**63
            digits = text.lstrip("+-").lstrip("0") or "0"
            if len(digits) < 20 and -limit <= int(text[0].strip("+0123456789") + digits) < limit:
                return int(text)
        case Scalar.DOUBLE if NUMBER.fullmatch(text) and math.isfinite(float(text)):
            return float(text)
        case Scalar.DATE if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return calendar(*map(int, text.split("-"))).date()
        case Scalar.TIMESTAMP if unit == "iso":
            return iso_time(text)
        case Scalar.TIMESTAMP if NUMBER.fullmatch(text):
            return instant(text, UNITS[unit])
        case Decimal(precision, scale) if NUMBER.fullmatch(text):
            return exact(text, precision, scale)
    raise Bad


def calendar(*parts: int) -> dt.datetime:
    try:
        return dt.datetime(*parts)  # noqa: DTZ001
    except ValueError as error:
        raise Bad from error


def iso_time(text: str) -> dt.datetime:
    match = ISO.fullmatch(text)
    if not match:
        raise Bad
    *parts, second, fraction, zone = match.groups()
    local = calendar(*map(int, parts), int(second or 0), int((fraction or "0").ljust(6, "0")[:6]))
    digits = re.sub("[^0-9]", "", zone or "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise Bad
    east = dt.timedelta(hours=hours, minutes=minutes) * (-1 if (zone or "").startswith("-") else 1)
    try:
        return (local - east).replace(tzinfo=dt.UTC)
    except OverflowError as error:
        raise Bad from error


def units_of(text: str) -> tuple[int, Number, int]:
    """Sign, digits without trailing zeros, and exponent."""
    try:
        sign, digits, exponent = Number(text).as_tuple()
    except DecimalException as error:
        raise Bad from error
    kept = "".join(map(str, digits)).lstrip("0")
    short = kept.rstrip("0")
    return (-1 if sign else 1), short, exponent + len(kept) - len(short)


def exact(text: str, precision: int, scale: int) -> Number:
    sign, digits, exponent = units_of(text)
    if not digits:
        return Number(0)
    if -exponent > scale or len(digits) + exponent > precision - scale:
        raise Bad
    return Number((0 if sign > 0 else 1, tuple(map(int, digits)), exponent))


def instant(text: str, places: int) -> dt.datetime:
    sign, digits, exponent = units_of(text)
    if digits and len(digits) + exponent > 30:
        raise Bad
    power = exponent + places
    if not digits:
        micros = 0
    elif power >= 0:
        micros = sign * int(digits) * 10**power
    elif len(digits) + power <= 0:
        micros = 0 if sign > 0 else -1
    else:
        micros = sign * int(digits) // 10**-power
    try:
        return (EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=dt.UTC)
    except OverflowError as error:
        raise Bad from error
