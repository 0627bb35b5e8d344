"""What the folder of a partition shows, and what a file log remembers of it for one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidemill.log.interface import Topic
from tidemill.log.segment import Footer

_DIGITS, _SEGMENT, _START = 20, ".parquet", ".start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A listing of the folder: names of segments, and of files that say where the log starts, in any order.

    Partitions may have many thousands of segments, and each batch lists them: a name is looked at only when it matters,
    so some may be no digits and a suffix. A listing from the offset `since` on tells nothing of those before it.
    """

    segments: Sequence[str]
    starts: Sequence[str]
    since: int = 0

    @staticmethod
    def of(names: Sequence[str], since: int = 0) -> Listing:
        """What these names of a folder say; others do not count."""
        segments, others = list[str](), list[str]()
        for name in names:
            (segments if name[_DIGITS:] == _SEGMENT else others).append(name)
        starts = [n for n in others if n[_DIGITS:] == _START and _is_offset(n)]
        return Listing(segments=segments, starts=starts, since=since)

    @property
    def start(self) -> int:
        """Where the log starts, as far as its start files say; what is before `since` counts as started."""
        return max(map(_offset, self.starts), default=self.since)

    @property
    def oldest(self) -> int | None:
        """The base offset of the oldest segment."""
        return _chosen(min, self.segments)

    @property
    def newest(self) -> int | None:
        """The base offset of the newest segment."""
        return _chosen(max, self.segments)

    def bases(self, since: int = 0) -> tuple[int, ...]:
        """The base offsets in order, beginning with that of the segment that holds `since`."""
        wanted = digits_of(since) + _SEGMENT
        first = _chosen(max, [name for name in self.segments if name <= wanted])
        low = wanted if first is None else digits_of(first)
        return tuple(sorted(_offset(name) for name in self.segments if name >= low and _is_offset(name)))


@dataclass(frozen=True, slots=True)
class FileMemory:
    """What one batch has asked: topics by name, footers of segments by file, and the last listing of each folder.

    Topics and footers do not change. A listing becomes old, so whoever uses it makes a new one before a loss is
    believed.
    """

    topics: dict[str, Topic] = field(default_factory=dict)
    footers: dict[str, Footer] = field(default_factory=dict)
    listings: dict[str, Listing] = field(default_factory=dict)


def digits_of(offset: int) -> str:
    """An offset as it stands in the name of a file."""
    return f"{offset:0{_DIGITS}d}"


def _is_offset(name: str) -> bool:
    digits = name[:_DIGITS]
    return digits.isdecimal() and digits.isascii()


def _offset(name: str) -> int:
    return int(name[:_DIGITS])


def _chosen(choose: Callable[..., str], names: Sequence[str]) -> int | None:
    """The offset in the least or the greatest of these names that have one; None if none has."""
    found = choose(names, default="")
    if not _is_offset(found):
        found = choose(filter(_is_offset, names), default="")
    return _offset(found) if found else None
