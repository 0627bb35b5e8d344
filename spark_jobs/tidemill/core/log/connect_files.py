"""Files of lines that other programs wrote as parts of a log: what their names say, and what they hold."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence

from tidemill.core.errors import SegmentDamaged
from tidemill.core.log.offsets import MAX_OFFSET, OffsetRange

_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)\+(?P<partition>\d+)\+(?P<offset>\d+)\.json(?:\.gz)?\Z")


def part_of(path: str) -> tuple[int, int] | None:
    """The partition and first offset in a file's name; None when the name has neither."""
    match = _NAME.match(path.rpartition("/")[2])
    return None if match is None else (int(match["partition"]), int(match["offset"]))


def lines_of(path: str, content: bytes) -> list[bytes]:
    """The lines of a file without their newlines; an empty end after the last newline is not a line.

    Raises:
        SegmentDamaged: the file is called `.gz` and cannot be unpacked.
    """
    try:
        data = gzip.decompress(content) if path.endswith(".gz") else content
    except (OSError, EOFError, zlib.error) as error:
        raise SegmentDamaged(f"{path} cannot be unpacked: {error}", fix="have it written again") from error
    lines = data.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def end_of(partition: int, first: int, firsts: Sequence[tuple[int, int]]) -> int:
    """Where a file that begins at `first` ends at the latest: at the first offset of the next file.

    `firsts` are partition and first offset of all files.
    """
    return min((offset for number, offset in firsts if number == partition and offset > first), default=MAX_OFFSET)


def records_of(
    path: str, content: bytes, ranges: Sequence[OffsetRange], firsts: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, bytes]]:
    """Partition, offset and value of the records of a file that lie in the ranges, in order.

    `firsts` are partition and first offset of all files. If two files hold the same offset, the file that begins later
    wins.
    """
    named = part_of(path)
    assert named is not None
    partition, first = named
    end = end_of(partition, first, firsts)
    wanted = [r for r in ranges if r.topic_partition.partition == partition]
    for offset, line in enumerate(lines_of(path, content), first) if wanted else ():
        if offset < end and any(offset in item for item in wanted):
            yield partition, offset, line
