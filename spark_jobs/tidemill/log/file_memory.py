"""What the folder of a partition shows, and what a file log remembers of it for one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidemill.log.interface import Topic
from tidemill.log.segment import Footer

_DIGITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A listing of the folder: base offsets of segments, and start offsets, as the digits of their names, in any order.

    Partitions may have many thousands of segments, and each batch lists them: only digits that are asked for become
    numbers.
    """

    segments: Sequence[str]
    starts: Sequence[str]

    @staticmethod
    def of(names: Sequence[str]) -> Listing:
        """What these names of a folder say; others do not count."""
        return Listing(segments=_offsets(names, ".parquet"), starts=_offsets(names, ".start"))

    @property
    def start(self) -> int:
        """Where the log starts, as far as its start files say."""
        return int(max(self.starts, default="0"))

    @property
    def oldest(self) -> int | None:
        """The base offset of the oldest segment."""
        return int(min(self.segments)) if self.segments else None

    @property
    def newest(self) -> int | None:
        """The base offset of the newest segment."""
        return int(max(self.segments)) if self.segments else None

    def bases(self, since: int = 0) -> tuple[int, ...]:
        """The base offsets in order, beginning with that of the segment that holds `since`."""
        wanted = digits_of(since)
        first = max((digits for digits in self.segments if digits <= wanted), default="")
        return tuple(sorted(int(digits) for digits in self.segments if digits >= first))


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


def _offsets(names: Sequence[str], suffix: str) -> Sequence[str]:
    """The digits of the file names with this suffix."""
    length = _DIGITS + len(suffix)
    found = [name[:_DIGITS] for name in names if len(name) == length and name.endswith(suffix)]
    return found if _are_digits("".join(found)) else [each for each in found if _are_digits(each)]


def _are_digits(text: str) -> bool:
    return text.isdecimal() and text.isascii()
