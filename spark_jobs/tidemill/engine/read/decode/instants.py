"""Times in text, whole columns at once: numpy reads the digits of fixed layouts.

Every function takes the texts of one column and returns numbers, and flags that say which of them are good. Nulls are
not good. No text raises an error. Microseconds and days count from 1970 in UTC.
"""

from __future__ import annotations

import datetime as dt
from itertools import product

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

SECOND = 1_000_000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
EARLIEST = (dt.datetime(1, 1, 1, tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)
LATEST = (dt.datetime.max.replace(tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)

_LENGTHS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int32)
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {int.from_bytes(name.encode()): month for month, name in enumerate(_NAMES, 1)}
_DATE = 10
_MINUTES = 16
_CLF = 26
_LONGEST = 35


def _tails() -> dict[int, list[tuple[int, int, int]]]:
    """What may follow the minutes, by length of the text: the lengths of seconds, digits of the fraction, and zone."""
    tails: dict[int, list[tuple[int, int, int]]] = {n: [] for n in range(_MINUTES, _LONGEST + 1)}
    for second, digits, zone in product((0, 3), range(10), (0, 1, 3, 5, 6)):
        if second or not digits:
            tails[_MINUTES + second + bool(digits) + digits + zone].append((second, digits, zone))
    return tails


_TAILS = _tails()


class _Layout:
    """Texts of equal length as a matrix of bytes, read part by part; a part that does not fit clears a text's flag."""

    def __init__(self, texts: Bytes) -> None:
        self.texts = texts
        self.good: Flags = np.ones(texts.shape[1], dtype=np.bool_)

    def number(self, start: int, stop: int) -> Small:
        digits = self.texts[start:stop] - np.uint8(48)
        self.good &= (digits <= 9).all(axis=0)
        value = np.zeros(self.texts.shape[1], dtype=np.int32)
        for digit in digits:
            value *= 10
            value += digit
        return value

    def one_of(self, position: int, characters: str) -> None:
        row = self.texts[position]
        fits = row == ord(characters[0])
        for character in characters[1:]:
            fits |= row == ord(character)
        self.good &= fits

    def below(self, value: Small, limit: int) -> Small:
        self.good &= value < limit
        return value


def iso_days(texts: pa.StringArray) -> tuple[Numbers, Flags]:
    """Dates as `2024-01-31`, years 1 to 9999."""
    days, good = _empty(len(texts))
    for length, rows, matrix in _by_length(texts):
        if length == _DATE:
            layout = _Layout(matrix)
            days[rows], good[rows] = _iso_date(layout), layout.good
    return days, good


def iso_instants(texts: pa.StringArray) -> tuple[Numbers, Flags]:
    """Times as `TimeUnit.ISO` describes them, in microseconds."""
    micros, good = _empty(len(texts))
    for length, rows, matrix in _by_length(texts):
        if _MINUTES <= length <= _LONGEST:
            micros[rows], good[rows] = _iso_of_length(matrix, length)
    return micros, good & _in_range(micros)


def log_instants(texts: pa.StringArray) -> tuple[Numbers, Flags]:
    """Times of an access log, `23/Mar/2014:15:07:00 -0700`, in microseconds."""
    micros, good = _empty(len(texts))
    for length, rows, matrix in _by_length(texts):
        if length == _CLF:
            layout = _Layout(matrix)
            for position, characters in ((2, "/"), (6, "/"), (11, ":"), (17, ":"), (20, " "), (21, "+-")):
                layout.one_of(position, characters)
            days = _days(layout, layout.number(7, 11), _month(layout, 3), layout.number(0, 2))
            seconds = _clock(layout, 12) + layout.below(layout.number(18, 20), 60)
            micros[rows] = (days * np.int64(86400) + seconds - _zone(layout, 21, 5)) * SECOND
            good[rows] = layout.good
    return micros, good & _in_range(micros)


def _empty(count: int) -> tuple[Numbers, Flags]:
    return np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)


def _in_range(micros: Numbers) -> Flags:
    return (micros >= EARLIEST) & (micros <= LATEST)


def _by_length(texts: pa.StringArray) -> list[tuple[int, Numbers, Bytes]]:
    """For each length that occurs up to the longest layout: its rows, and their bytes as (length, rows)."""
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)
    lengths = np.diff(offsets)
    if texts.null_count:
        lengths = np.where(np.asarray(texts.is_null()), -1, lengths)
    groups = []
    for length in np.flatnonzero(np.bincount(lengths[(lengths > 0) & (lengths <= _LONGEST)])).tolist():
        rows = np.flatnonzero(lengths == length)
        if len(rows) == len(texts):
            matrix = np.ascontiguousarray(data[offsets[0] : offsets[-1]].reshape(-1, length).T)
        else:
            matrix = data[offsets[rows][None, :] + np.arange(length, dtype=np.int32)[:, None]]
        groups.append((length, rows, matrix))
    return groups


def _iso_of_length(matrix: Bytes, length: int) -> tuple[Numbers, Flags]:
    """Read texts of one length: at most one of the layouts with this length fits a text."""
    head = _Layout(matrix)
    head.one_of(10, "T ")
    seconds = _iso_date(head) * np.int64(86400) + _clock(head, 11)
    micros, good = _empty(matrix.shape[1])
    for second, fraction, zone in _TAILS[length]:
        tail = _Layout(matrix)
        _marks(tail, second, fraction, zone)
        if tail.good.any():
            value = (seconds + _second(tail, second) - _zone(tail, length - zone, zone)) * SECOND
            value += _fraction(tail, _MINUTES + second, fraction)
            micros = np.where(tail.good, value, micros)
            good |= tail.good
    return micros, good & head.good


def _marks(layout: _Layout, second: int, fraction: int, zone: int) -> None:
    """Check the characters that tell the layouts of one length apart: a cheap test that few texts pass."""
    if second:
        layout.one_of(_MINUTES, ":")
    if fraction:
        layout.one_of(_MINUTES + second, ".,")
    if zone:
        layout.one_of(len(layout.texts) - zone, "Z" if zone == 1 else "+-")
    if zone == len("+01:00"):
        layout.one_of(len(layout.texts) - 3, ":")


def _iso_date(layout: _Layout) -> Small:
    """`2024-01-31` at the start, in days; read once for all texts if they have one date, as those of a batch often do.

    Then it is one number.
    """
    dates = layout.texts[:_DATE]
    if dates.shape[1] > 1 and (dates == dates[:, :1]).all():
        one = _Layout(dates[:, :1])
        days = _iso_date(one)
        layout.good &= one.good
        return days
    layout.one_of(4, "-")
    layout.one_of(7, "-")
    return _days(layout, layout.number(0, 4), layout.number(5, 7), layout.number(8, 10))


def _clock(layout: _Layout, start: int) -> Small:
    """`15:07` from `start` on, in seconds."""
    layout.one_of(start + 2, ":")
    hours = layout.below(layout.number(start, start + 2), 24)
    return hours * 3600 + layout.below(layout.number(start + 3, start + 5), 60) * 60


def _second(layout: _Layout, length: int) -> Small:
    """Seconds, `:59` after the minutes, or 0 without them. A leap second, :60, is refused: Spark's UTC has none."""
    if not length:
        return np.zeros(layout.texts.shape[1], dtype=np.int32)
    return layout.below(layout.number(_MINUTES + 1, _MINUTES + 3), 60)


def _fraction(layout: _Layout, start: int, digits: int) -> Small:
    """`.123` in microseconds; digits after the sixth are checked and dropped."""
    if not digits:
        return np.zeros(layout.texts.shape[1], dtype=np.int32)
    kept = min(digits, 6)
    layout.number(start + 1 + kept, start + 1 + digits)
    return layout.number(start + 1, start + 1 + kept) * np.int32(10 ** (6 - kept))


def _zone(layout: _Layout, start: int, length: int) -> Small:
    """Seconds east of UTC: `Z`, `+01`, `+0100`, `+01:00`, or nothing."""
    east = np.zeros(layout.texts.shape[1], dtype=np.int32)
    if length <= 1:
        return east
    east += layout.below(layout.number(start + 1, start + 3), 24) * 3600
    if length > 3:
        east += layout.below(layout.number(start + length - 2, start + length), 60) * 60
    west = layout.texts[start] == ord("-")
    east[west] *= -1
    return east


def _month(layout: _Layout, start: int) -> Small:
    """`Mar` as 3; 0 for an unknown name."""
    name = np.zeros(layout.texts.shape[1], dtype=np.int32)
    for row in layout.texts[start : start + 3]:
        name = name * 256 + row
    month = np.zeros_like(name)
    for code, number in _MONTHS.items():
        month[name == code] = number
    return month


def _days(layout: _Layout, year: Small, month: Small, day: Small) -> Small:
    """Days since 1970 in the proleptic Gregorian calendar (Howard Hinnant's `days_from_civil`)."""
    known = np.where(month <= 12, month, 0)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0)) & (known == 2)
    layout.good &= (year > 0) & (day > 0) & (day <= _LENGTHS[known] + leap)
    years = year - (month <= 2)
    era, of_era = years // 400, years % 400
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468
