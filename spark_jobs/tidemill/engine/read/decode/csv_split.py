"""CSV records (RFC 4180) split into fields, a whole batch at once: by flags on bytes, not by a loop over records.

A value is written either without quotes and line breaks, or between quotes, with each quote in it doubled. Nothing may
stand between a quote and the delimiter beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

Flags = npt.NDArray[np.bool_]
Ends = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]

_QUOTE = ord('"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The fields of the records that could be split.

    `fields` has all fields, record after record, without their quotes. `quoted` says which fields had quotes, with one
    row for each record. Record k of these is record `where[k]` of the input. `errors` has the other records.
    """

    fields: pa.StringArray
    quoted: Flags
    where: npt.NDArray[np.int64]
    errors: dict[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bytes:
    """The bytes of all records: record r is `data[bounds[r] : bounds[r + 1]]`. No record is empty.

    `first` marks the first byte of each record; `quote` marks quotes; `inside` marks quoted bytes and their opening
    quotes. `separators` are the positions of delimiters outside quotes; those of record r are number `ranks[r]` up to,
    but not including, `ranks[r + 1]`.
    """

    data: npt.NDArray[np.uint8]
    bounds: Ends
    first: Flags
    quote: Flags
    inside: Flags
    separators: Places
    ranks: Places

    def flags(self, positions: Places | Ends) -> Flags:
        """Flags that are set at these positions."""
        flags = np.zeros(len(self.data), dtype=np.bool_)
        flags[positions] = True
        return flags

    def after(self, flags: Flags) -> Flags:
        """Flags for the bytes that follow a marked byte of the same record."""
        moved = np.zeros_like(flags)
        moved[1:] = flags[:-1] & ~self.first[1:]
        return moved

    def before(self, flags: Flags) -> Flags:
        """Flags for the bytes before a marked byte of the same record."""
        moved = np.zeros_like(flags)
        moved[:-1] = flags[1:] & ~self.first[1:]
        return moved


def split(texts: pa.StringArray, delimiter: str, count: int) -> Split:
    """Split each record into `count` fields. No record may be empty or null."""
    found = _scan(texts, ord(delimiter))
    errors: dict[int, str] = {}
    unwanted = _check_quotes(found, errors) if found.inside.any() else None
    breaks = (found.data == ord("\n")) | (found.data == ord("\r"))
    _note(found, breaks & ~found.inside, "a line break outside quotes", errors)
    columns = np.diff(found.ranks) + 1
    for row in np.flatnonzero(columns != count).tolist():
        errors.setdefault(row, f"expected {count} columns, found {columns[row]}")
    return _cut(found, unwanted, count, errors)


def _scan(texts: pa.StringArray, delimiter: int) -> _Bytes:
    bounds = np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2], dtype=np.uint8)[bounds[0] : bounds[-1]]
    bounds = bounds - bounds[0]
    first = np.zeros(len(data), dtype=np.bool_)
    first[bounds[:-1]] = True
    quote = data == _QUOTE
    inside = np.zeros_like(quote)
    if quote.any():
        inside = np.logical_xor.accumulate(quote)
        # After a quote that is not closed, the flags of the next records are inverted.
        odd = np.append(False, inside)[bounds[:-1]]
        inside ^= np.repeat(odd, np.diff(bounds))
    separators = np.flatnonzero((data == delimiter) & ~inside)
    ranks = np.searchsorted(separators, bounds)
    return _Bytes(data=data, bounds=bounds, first=first, quote=quote, inside=inside, separators=separators, ranks=ranks)


def _check_quotes(found: _Bytes, errors: dict[int, str]) -> Flags:
    """Note the faults of quoting; return flags for the quotes that are not part of a value."""
    opens, closes = found.quote & found.inside, found.quote & ~found.inside
    separator, last = found.flags(found.separators), found.flags(found.bounds[1:] - 1)
    doubled = opens & found.after(closes)
    edge = found.first | found.after(separator) | doubled
    _note(found, opens & ~edge, "a quote inside a value that is not quoted", errors)
    edge = last | found.before(separator) | found.before(opens)
    _note(found, closes & ~edge, "text after the closing quote", errors)
    _note(found, found.inside & last, "a quote is not closed", errors)
    return closes | (opens & ~doubled)


def _note(found: _Bytes, wrong: Flags, what: str, errors: dict[int, str]) -> None:
    """For each record with a marked byte, note an error at the first one."""
    at = np.flatnonzero(wrong)
    rows, first = np.unique(np.searchsorted(found.bounds, at, side="right") - 1, return_index=True)
    columns = np.searchsorted(found.separators, at[first]) - found.ranks[rows] + 1
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        errors.setdefault(row, f"column {column}: {what}")


def _cut(found: _Bytes, unwanted: Flags | None, count: int, errors: dict[int, str]) -> Split:
    good = np.ones(len(found.bounds) - 1, dtype=np.bool_)
    good[list(errors)] = False
    separators = found.separators[np.repeat(good, np.diff(found.ranks))].reshape(int(good.sum()), count - 1)
    starts = np.column_stack([found.bounds[:-1][good], separators + 1])
    ends = np.column_stack([separators, found.bounds[1:][good]])
    lengths = ends - starts
    kept = ~found.flags(found.separators)
    if unwanted is not None:
        kept &= ~unwanted
        before = np.append(0, np.cumsum(unwanted, dtype=np.int32))
        lengths -= before[ends] - before[starts]
    if errors:
        kept &= np.repeat(good, np.diff(found.bounds))
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
    fields = pa.StringArray.from_buffers(starts.size, pa.py_buffer(offsets), pa.py_buffer(found.data[kept]))
    quoted = (starts < ends) & np.append(found.quote, False)[starts]
    return Split(fields=fields, quoted=quoted, where=np.flatnonzero(good), errors=errors)
