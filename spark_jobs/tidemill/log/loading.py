"""Appends files and standard input to a topic."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, assert_never

from tidemill.core.errors import LogInputError, TidemillError
from tidemill.core.log.offsets import OffsetRange, merge_ranges
from tidemill.log.append_formats.chunks import Chunk, ChunkSize, gather
from tidemill.log.append_formats.lines import JsonLines, Lines, read_json_lines, read_lines
from tidemill.log.append_formats.tables import Csv, ParquetRows, read_csv, read_parquet
from tidemill.log.producer import Producer
from tidemill.log.refusals import OtherBatch

InputFormat = Lines | JsonLines | Csv | ParquetRows

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The result of an append. `ranges` are merged; `bytes` is the size of the inputs.

    `records` counts all records of the inputs, `there` those that were in the log before. `ranges` say where the
    records are, as far as the log knows.
    """

    records: int
    bytes: int
    ranges: tuple[OffsetRange, ...]
    there: int = 0

    @property
    def appended(self) -> int:
        """How many records this append added to the log."""
        return self.records - self.there


def load(  # noqa: PLR0913  an append is all of these
    producer: Producer,
    sources: Sequence[str],
    input_format: InputFormat,
    size: ChunkSize,
    *,
    go_on: str = "append the same input again under the same producer id",
    progress: Callable[[int], None] = lambda consumed: None,
) -> Loaded:
    """Append the records of the sources in their order, chunk by chunk. Memory holds one or two chunks.

    Chunks are numbered from 0, so that loading the same sources again appends only what is missing.

    Args:
        producer: appends to the topic; it must have an id.
        sources: paths, or `-` for standard input.
        input_format: how to read all of them.
        size: how large a chunk is.
        go_on: advice for the user if the append fails halfway; it becomes part of the error.
        progress: called after each chunk with the bytes consumed so far.

    Raises:
        LogInputError: a source or one of its rows cannot be read, or a file changed meanwhile.
        TidemillError: the log failed. Every error says how many records are in the log, and where.
    """
    loading = _Loading(producer, progress)
    before = _look(sources)
    try:
        for chunk in _all_chunks(sources, input_format, size):
            if _look(sources) != before:
                raise LogInputError("the input changed while it was read", fix="append a copy that nobody writes to")
            loading.append(chunk)
    except TidemillError as error:
        what, some = loading.so_far()
        goes_on = some and not isinstance(error, OtherBatch)
        fix = "; then ".join(text for text in (error.fix, go_on if goes_on else "") if text)
        raise type(error)(f"{error.message}; {what}", fix=fix) from error
    return loading.done()


class _Loading:
    """The progress of an append: which chunks are in the log."""

    def __init__(self, producer: Producer, progress: Callable[[int], None]) -> None:
        self._producer, self._progress = producer, progress
        self._known = producer.next_sequence()
        self._ranges: tuple[OffsetRange, ...] = ()
        self._records = self._there = self._bytes = self._chunks = 0
        self._tried = 0

    def append(self, chunk: Chunk) -> None:
        """Append the next chunk, unless it is in the log already."""
        sequence, count = self._chunks, len(chunk.records)
        there = self._landed(sequence, count) if sequence < self._known else 0
        self._tried = count
        written = self._producer.append(chunk.records, sequence=sequence)
        self._ranges = merge_ranges((*self._ranges, *written))
        self._records, self._there = self._records + count, self._there + there
        self._bytes, self._chunks, self._tried = chunk.consumed, sequence + 1, 0
        self._progress(chunk.consumed)

    def done(self) -> Loaded:
        """Return the result of the whole append.

        Raises:
            LogInputError: the log has more chunks of this producer than the input.
        """
        if self._known > self._chunks:
            raise LogInputError(
                f"the log has {self._known} chunks of producer {self._producer.producer_id}, and this input has "
                f"{self._chunks}: it is another input, or it is cut otherwise; nothing was appended",
                fix="give all of the first input with the same options; or append this one as another input: with "
                "--again, or under a producer id that was never used",
            )
        return Loaded(records=self._records, bytes=self._bytes, ranges=self._ranges, there=self._there)

    def so_far(self) -> tuple[str, bool]:
        """Describe which records of this input are in the log, and say whether any may be.

        Asks the log about the chunk that failed.
        """
        parts: tuple[OffsetRange, ...] = ()
        count, unknown = self._records, ""
        if self._tried:
            try:
                parts = self._producer.landed(self._chunks)
                count += self._producer.landed_records(self._chunks)
            except TidemillError:
                unknown = f", and perhaps some of the {self._tried:,} after them: the log cannot be asked now"
        if not (count or unknown):
            return "nothing was appended", False
        ranges = ", ".join(map(str, merge_ranges((*self._ranges, *parts))))
        return f"{count:,} records of this input are in the log{f' ({ranges})' if ranges else ''}{unknown}", True

    def _landed(self, sequence: int, count: int) -> int:
        """How many records of a chunk landed before this append. All chunks before the newest one landed whole."""
        if sequence < self._known - 1:
            return count
        return min(self._producer.landed_records(sequence), count)


def check(sources: Sequence[str], input_format: InputFormat, size: ChunkSize) -> None:
    """Read the sources once without appending, so that a bad row is found before earlier rows are in the log.

    Raises:
        LogInputError: a source or one of its rows cannot be read.
    """
    try:
        for _ in _all_chunks(sources, input_format, size):
            pass
    except LogInputError as error:
        raise LogInputError(f"{error.message}; nothing was appended", fix=error.fix) from error


def can_be_read_twice(sources: Sequence[str]) -> bool:
    """Whether all sources are regular files."""
    return all(source != STANDARD_INPUT and Path(source).is_file() for source in sources)


def _look(sources: Sequence[str]) -> list[tuple[int, int, int] | None]:
    """Inode, size and modification time of each file, to notice changes; None for a source that is no file."""
    found: list[tuple[int, int, int] | None] = []
    for source in sources:
        path = Path(source)
        known = path.stat() if source != STANDARD_INPUT and path.is_file() else None
        found.append(known and (known.st_ino, known.st_size, known.st_mtime_ns))
    return found


def total_bytes(sources: Sequence[str]) -> int | None:
    """The size of all sources; None if one of them is not a regular file.

    Raises:
        LogInputError: a source does not exist or is a folder.
    """
    paths = [Path(source) for source in sources if source != STANDARD_INPUT]
    for path in paths:
        if path.is_dir() or not path.exists():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise LogInputError(f"{path} {what}", fix="give a file, or - for standard input")
    if len(paths) < len(sources) or not all(path.is_file() for path in paths):
        return None
    return sum(path.stat().st_size for path in paths)


def _all_chunks(sources: Sequence[str], input_format: InputFormat, size: ChunkSize) -> Iterator[Chunk]:
    before = 0
    for source in sources:
        consumed = 0
        for chunk in chunks_of(source, input_format, size):
            consumed = chunk.consumed
            yield Chunk(records=chunk.records, consumed=before + consumed)
        before += consumed


def chunks_of(source: str, input_format: InputFormat, size: ChunkSize) -> Iterator[Chunk]:
    """The records of one source, in order.

    Raises:
        LogInputError: the source or one of its rows cannot be read.
    """
    name = "standard input" if source == STANDARD_INPUT else source
    with _opened(source, name, seekable=isinstance(input_format, ParquetRows)) as stream:
        match input_format:
            case Lines():
                yield from gather(read_lines(stream, name, input_format), size)
            case JsonLines():
                yield from gather(read_json_lines(stream, name, input_format), size)
            case Csv():
                yield from gather(read_csv(stream, name, input_format), size)
            case ParquetRows():
                length = stream.seek(0, 2)
                stream.seek(0)
                yield from gather(read_parquet(stream, name, input_format, length), size)
            case _:
                assert_never(input_format)


@contextmanager
def _opened(source: str, name: str, *, seekable: bool) -> Iterator[IO[bytes]]:
    try:
        if source != STANDARD_INPUT:
            with Path(source).open("rb") as stream:
                yield stream
        elif seekable:
            with tempfile.TemporaryFile() as copy:
                shutil.copyfileobj(_standard_input(name), copy)
                yield copy
        else:
            yield _standard_input(name)
    except OSError as error:
        raise LogInputError(f"{name} cannot be read: {error.strerror or error}") from error


def _standard_input(name: str) -> IO[bytes]:
    # Python sets it to None if the process started with it closed.
    if sys.stdin is None:
        raise LogInputError(f"{name} cannot be read: it is closed", fix="name a file, or write to standard input")
    return sys.stdin.buffer
