"""A log of plain files: a folder per topic, in it a folder per partition, in it Parquet segments; also in a bucket.

    <root>/<topic>/topic.json                                       name, random id, partitions
    <root>/<topic>/<topic id>/<partition>/<base offset>.parquet     records, Kafka's columns
    <root>/<topic>/<topic id>/<partition>/<start offset>.start      where retention makes it start

The folder named after the id keeps writers and readers of a deleted topic away from a later topic of that name.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime
from pathlib import Path

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.errors import ConfigError, LogError
from tidemill.core.log.offsets import OffsetRange, merge_ranges
from tidemill.core.log.scan import ParquetScan
from tidemill.core.once import once
from tidemill.log import refusals
from tidemill.log.file_memory import FileMemory
from tidemill.log.file_partition import FilePartition
from tidemill.log.interface import Topic, Usage
from tidemill.log.reading import first_at
from tidemill.log.records import NewRecord, as_table, utc_now
from tidemill.log.writable import LandedBatch, ProducerBatch
from tidemill.stores.interface import Store
from tidemill.stores.local import LocalStore

FORMAT_VERSION = 1

_GLOB = frozenset("*?[]{}\\")


class _TopicFile(msgspec.Struct, frozen=True):
    """The content of `topic.json`."""

    format_version: int
    name: str
    topic_id: str
    partitions: int
    created: datetime


class FileLog:
    """A `WritableLog` under one folder, which any number of processes may use at once.

    The folder is created with the first topic. Nothing is cached, unless by `remembering`: every call reads the store.
    `storage` returns the options with which Arrow reads segments that are not on this machine.

    Raises:
        ConfigError: the path of the folder has a character that Spark would take for a pattern.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        store: Store | None = None,
        storage: Callable[[], Mapping[str, str]] = dict,
        clock: Callable[[], datetime] = utc_now,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._store = store or LocalStore(root, clock=clock)
        self._storage = storage
        self._where = str(root)
        if strange := sorted(_GLOB & set(self._store.locate(""))):
            raise ConfigError(
                f"the log's folder {root} has {' '.join(strange)} in its path, which Spark reads as a pattern",
                fix="move the log to a folder without these characters",
            )
        self._clock = clock
        self._new_id = new_id
        self._memory: FileMemory | None = None

    def remembering(self) -> FileLog:
        """See `Remembers`: the store is asked once for topics, footers of segments, and the names that a scan needs."""
        found = copy(self)
        found._memory = FileMemory()
        return found

    def names(self) -> Sequence[str]:
        """Return the names of all topics, sorted."""
        return [topic.name for topic in self.topics()]

    def topics(self) -> Sequence[Topic]:
        """Return all topics, sorted by name."""
        names = sorted(name for name in self._store.list("") if refusals.is_topic_name(name))
        return [topic for name in names if (topic := self._read_topic(name))]

    def topic(self, name: str) -> Topic:
        """Return the topic called `name`, or raise `UnknownTopic`."""
        topic = self._read_topic(name) if refusals.is_topic_name(name) else None
        if topic is None:
            raise refusals.unknown_topic(name, self._where, self.names())
        return topic

    def bounds(self, name: str) -> Mapping[int, OffsetRange]:
        """Return for each partition the range from its first offset still held to its next offset.

        Costs one listing and one footer per partition.
        """
        return self.bounds_since(name, {})

    def bounds_since(self, name: str, offsets: Mapping[int, int]) -> Mapping[int, OffsetRange]:
        """See `Continues`: of a partition with many segments, a bucket lists only the names of new ones."""
        return {
            part.place.partition: part.bounds(offsets.get(part.place.partition, 0)) for part in self._partitions(name)
        }

    def offset_at(self, name: str, partition: int, moment: datetime) -> int:
        """Return the first offset whose record has `moment` or a later time, or the end."""
        return first_at(self, name, partition, moment)

    def scan(self, topic_id: str, ranges: Sequence[OffsetRange]) -> ParquetScan:
        """Check these ranges of one topic and return how to read them.

        Reads the footer of each file of the scan, and no records.
        """
        if not ranges:
            return ParquetScan(files=(), ranges=())
        topic = self.topic(ranges[0].topic_partition.topic)
        refusals.check_scan(topic, topic_id, ranges)
        files: dict[str, OffsetRange] = {}
        for item in merge_ranges(ranges):
            files.update(self._partition(topic, item.topic_partition.partition).cover(item))
        exact = sum(map(len, files.values())) == sum(map(len, ranges))
        return ParquetScan(files=tuple(files), ranges=tuple(ranges), exact=exact, storage=self._storage())

    def create_topic(self, name: str, partitions: int, *, force: bool = False) -> Topic:
        """Create an empty topic, or raise `LogInputError` if the name is taken or not allowed."""
        refusals.check_new_topic(name, partitions, force=force)
        file = _TopicFile(
            format_version=FORMAT_VERSION,
            name=name,
            topic_id=self._new_id(),
            partitions=partitions,
            created=self._clock(),
        )
        if not self._store.put_if_absent(_topic_file(name), msgspec.json.format(msgspec.json.encode(file))):
            raise refusals.topic_exists(self.topic(name), self._where)
        return _topic_of(file)

    def delete_topic(self, name: str) -> None:
        """Delete the topic, then all its files. Nobody finds the topic from the first step on."""
        topic = self.topic(name)
        self._store.delete(_topic_file(name))
        self._store.delete_folder(f"{name}/{topic.topic_id}")

    def append(
        self,
        topic: str,
        partition: int,
        records: pa.Table | Iterable[NewRecord],
        *,
        at: int | None = None,
        batch: ProducerBatch | None = None,
    ) -> OffsetRange:
        """Append the records as one segment and return their offsets."""
        return self._partition(self.topic(topic), partition).append(as_table(records), at, batch)

    def landed(self, topic: str, partition: int, producer_id: str, sequence: int | None = None) -> LandedBatch | None:
        """Return the share of a producer's batch in this partition, or None if it is not known.

        `Footer` says how many producers a partition remembers.
        """
        return self._partition(self.topic(topic), partition).landed(producer_id, sequence)

    def trim(self, topic: str, partition: int, before_offset: int) -> OffsetRange:
        """Delete the records below `before_offset` and return the range that is left.

        Only segments wholly below the offset are deleted, and never the newest one.
        """
        return self._partition(self.topic(topic), partition).trim(before_offset)

    def usage(self, name: str) -> Mapping[int, Usage]:
        """Return how much each partition takes in the store."""
        return {part.place.partition: part.usage() for part in self._partitions(name)}

    def _partition(self, topic: Topic, partition: int) -> FilePartition:
        return FilePartition(self._store, topic, partition, self._clock, self._memory)

    def _partitions(self, name: str) -> list[FilePartition]:
        topic = self.topic(name)
        refusals.check_readable(topic)
        return [self._partition(topic, number) for number in range(topic.partitions)]

    def _read_topic(self, name: str) -> Topic | None:
        return once(None if self._memory is None else self._memory.topics, name, self._topic_there)

    def _topic_there(self, name: str) -> Topic | None:
        try:
            raw = self._store.read(_topic_file(name))
        except FileNotFoundError:
            return None
        path = self._store.locate(_topic_file(name))
        try:
            file = msgspec.json.decode(raw, type=_TopicFile)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise LogError(f"{path} does not describe a topic: {error}", fix="bring it back from a copy") from error
        if file.format_version != FORMAT_VERSION or file.name != name:
            raise LogError(
                f"{path}: expected format_version {FORMAT_VERSION} and name {name}, "
                f"found {file.format_version} and {file.name}",
                fix="use the version of Tidemill that wrote it, and leave the folder's name as it was",
            )
        return _topic_of(file)


def _topic_of(file: _TopicFile) -> Topic:
    return Topic(
        name=file.name, topic_id=file.topic_id, partitions=file.partitions, layout="tidemill", created=file.created
    )


def _topic_file(name: str) -> str:
    return f"{name}/topic.json"
