"""Files and standard input, appended to a topic."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, assert_never

from tidemill.core.errors import CommitUnknown, LogInputError, TidemillError
from tidemill.core.offsets import OffsetRange, merge_ranges
from tidemill.log.inputs.chunks import Chunk, ChunkSize, gather
from tidemill.log.inputs.lines import JsonLines, Lines, read_json_lines, read_lines
from tidemill.log.inputs.tables import Csv, ParquetRows, read_csv, read_parquet
from tidemill.log.producer import Producer

InputFormat = Lines | JsonLines | Csv | ParquetRows

STANDARD_INPUT = "-"


_LOOK = "look at the end of the topic (`tidemill log ls`, `tidemill log cat`) before you append the rest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What an append brought into the log: ranges are merged, `bytes` are those of the inputs."""

    records: int
    bytes: int
    ranges: tuple[OffsetRange, ...]


def load(
    producer: Producer,
    sources: Sequence[str],
    input_format: InputFormat,
    size: ChunkSize,
    *,
    progress: Callable[[int], None] = lambda consumed: None,
) -> Loaded:
    """Append the records of the sources, in their order, chunk by chunk; memory holds one or two chunks.

    Args:
        producer: whose topic gets the records. If it is idempotent, chunks are numbered from 0, and a
            repeated load of the same sources appends only what is not there yet.
        sources: paths, or `-` for standard input.
        input_format: how to read all of them.
        size: how large a chunk is.
        progress: told the bytes consumed so far after each chunk.

    Raises:
        LogInputError: a source cannot be read, or a row of it. The text says how many records were
            appended before: those of all chunks before the one with the error.
    """
    records = consumed = 0
    ranges: tuple[OffsetRange, ...] = ()
    try:
        for sequence, chunk in enumerate(_all_chunks(sources, input_format, size)):
            written = producer.append(chunk.records, sequence=sequence if producer.idempotent else None)
            ranges = merge_ranges((*ranges, *written))
            records += len(chunk.records)
            consumed = chunk.consumed
            progress(consumed)
    except LogInputError as error:
        done = f"the first {records:,} records were appended, nothing after them" if records else "nothing was appended"
        raise LogInputError(f"{error.message}; {done}", fix=error.fix) from error
    except CommitUnknown as error:
        raise CommitUnknown(
            f"{error.message}; the first {records:,} records were appended, and perhaps some more",
            fix=error.fix if producer.idempotent else _LOOK,
        ) from error
    except TidemillError as error:
        raise type(error)(f"{error.message}; the first {records:,} records were appended", fix=error.fix) from error
    return Loaded(records=records, bytes=consumed, ranges=ranges)


def total_bytes(sources: Sequence[str]) -> int | None:
    """The size of all sources, None when one of them is no regular file.

    Raises:
        LogInputError: one of them does not exist or is a folder.
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
        for chunk in _chunks(source, input_format, size):
            consumed = chunk.consumed
            yield Chunk(records=chunk.records, consumed=before + consumed)
        before += consumed


def _chunks(source: str, input_format: InputFormat, size: ChunkSize) -> Iterator[Chunk]:
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
                shutil.copyfileobj(sys.stdin.buffer, copy)
                yield copy
        else:
            yield sys.stdin.buffer
    except OSError as error:
        raise LogInputError(f"{name} cannot be read: {error.strerror or error}") from error
