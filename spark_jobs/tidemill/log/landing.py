"""A landing zone as a log: files that Kafka Connect's S3 sink wrote, read in place and never rewritten.

    <root>/<topic>/partition=<number>/<topic>+<number>+<first offset>.json[.gz]     one line per record

The names are those of the sink's default partitioner with the JSON format. The files hold values, but no keys, headers
or times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from tidemill.core.errors import LogInputError, OffsetsLost
from tidemill.core.log.connect_files import lines_of, part_of
from tidemill.core.log.no_copy import without_copy
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.scan import LinesScan
from tidemill.log import refusals
from tidemill.log.interface import Topic, Usage
from tidemill.stores.interface import Store

_FOLDER = "partition="


class LandingLog:
    """A `Log` of files that appear complete, under new names, and never change.

    With `gaps`, offsets may be missing between files: transactions and compaction in Kafka leave such gaps. Without
    `gaps`, a missing offset counts as a lost record, and a batch that needs it does not commit.

    If the oldest files of a partition are removed, it starts at the first file left. A topic has no identity but its
    name: nobody notices if a topic is deleted and filled again with other records.
    """

    def __init__(
        self, root: str, store: Store, *, storage: Callable[[], Mapping[str, str]] = dict, gaps: bool = False
    ) -> None:
        self._root, self._store, self._storage, self._gaps = root, store, storage, gaps
        self._lengths: dict[str, int] = {}

    def names(self) -> Sequence[str]:
        """Return the names of all topics, sorted."""
        return [topic.name for topic in self.topics()]

    def topics(self) -> Sequence[Topic]:
        """Return all topics, sorted by name."""
        names = sorted(name for name in self._store.list("") if refusals.is_topic_name(name))
        return [topic for name in names if (topic := self._topic(name))]

    def topic(self, name: str) -> Topic:
        """Return the topic called `name`, or raise `UnknownTopic`."""
        found = self._topic(name) if refusals.is_topic_name(name) else None
        if found is None:
            raise refusals.unknown_topic(name, self._root, self.names())
        return found

    def bounds(self, name: str) -> Mapping[int, OffsetRange]:
        """Return for each partition the range from its first offset to the end of its last file.

        Costs one listing per partition; the last file is read once. A partition without files is left out: its first
        offset is not known.
        """
        self.topic(name)
        places = (TopicPartition(name, number) for number in self._numbers(name))
        found = (self._held(place, self._files(name, place.partition)) for place in places)
        return {held.topic_partition.partition: held for held in found if held}

    def offset_at(self, name: str, partition: int, moment: datetime) -> int:
        """Refuse: the files do not hold the times of records.

        Raises:
            LogInputError: always.
        """
        raise LogInputError(
            f"{name}-{partition}: the files of a landing zone do not say when a record was written",
            fix="give offsets instead of times",
        )

    def scan(self, topic_id: str, ranges: Sequence[OffsetRange]) -> LinesScan:
        """Check these ranges of one topic and return how to read them.

        Offsets missing between two files are noticed when the files are read.
        """
        if not ranges:
            return LinesScan(files=(), ranges=())
        topic = self.topic(ranges[0].topic_partition.topic)
        refusals.check_scan(topic, topic_id, ranges)
        files: dict[str, None] = {}
        for item in (r for r in ranges if r):
            there = self._files(topic.name, item.topic_partition.partition)
            refusals.check_held(item, self._held(item.topic_partition, there))
            files |= dict.fromkeys(self._cover(there, item))
        return LinesScan(
            files=tuple(files), ranges=tuple(ranges), dense=not self._gaps, storage=self._storage() if files else {}
        )

    def usage(self, name: str) -> Mapping[int, Usage]:
        """Return how much each partition takes in the store."""
        self.topic(name)
        found = {}
        for number in self._numbers(name):
            sizes = self._store.sizes(f"{name}/{_FOLDER}{number}")
            mine = [size for file, size in sizes.items() if part_of(file)]
            found[number] = Usage(segments=len(mine), bytes=sum(mine))
        return found

    def _topic(self, name: str) -> Topic | None:
        numbers = self._numbers(name)
        if not numbers:
            return None
        return Topic(name=name, topic_id=f"kafka-connect/{name}", partitions=max(numbers) + 1, layout="kafka-connect")

    def _numbers(self, name: str) -> list[int]:
        """The partitions that have a folder, in order. The highest number may be far above their count."""
        folders = (folder.removeprefix(_FOLDER) for folder in self._store.list(name) if folder.startswith(_FOLDER))
        return sorted(int(number) for number in folders if number.isdecimal() and number == str(int(number)))

    def _held(self, place: TopicPartition, files: Sequence[tuple[int, str]]) -> OffsetRange:
        if not files:
            return OffsetRange(place, 0, 0)
        first, (last, path) = files[0][0], files[-1]
        return OffsetRange(place, first, last + self._length(path))

    def _files(self, name: str, partition: int) -> list[tuple[int, str]]:
        """The first offset and the path of each file, in order."""
        folder = f"{name}/{_FOLDER}{partition}"
        found: dict[int, str] = {}
        for file in self._store.list(folder):
            named = part_of(file)
            if named is None or named[0] != partition:
                continue
            if (other := found.get(named[1])) is not None:
                names = sorted((other.rpartition("/")[2], file))
                raise refusals.two_files(TopicPartition(name, partition), named[1], names)
            found[named[1]] = f"{folder}/{file}"
        return sorted(found.items())

    def _length(self, path: str) -> int:
        if path not in self._lengths:
            self._lengths[path] = len(lines_of(path, self._store.read(path)))
        return self._lengths[path]

    def _cover(self, files: Sequence[tuple[int, str]], wanted: OffsetRange) -> list[str]:
        begin = bisect_right(files, wanted.from_offset, key=lambda file: file[0]) - 1
        if begin < 0:
            raise OffsetsLost(f"{wanted}: its first file is gone", fix=f"bring it back; {without_copy()}")
        return [self._store.locate(path) for first, path in files[begin:] if first < wanted.until_offset]
