"""Reads records without Spark: one by one, for people and for tests, and those of Kafka for small batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import assert_never

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from tidemill.core.errors import SegmentDamaged
from tidemill.core.log.connect_files import end_of, lines_of, records_of
from tidemill.core.log.offsets import OffsetRange, TopicPartition, outside
from tidemill.core.log.scan import KafkaScan, LinesScan, MemoryScan, ParquetScan, Record, Scan, TableScan
from tidemill.core.time.times import UNKNOWN, nearest_moment
from tidemill.log import refusals
from tidemill.log.interface import Log
from tidemill.log.records import in_years
from tidemill.stores.opened import opened

_BATCH_ROWS = 1_000
_RECORD_BYTES = 256


def read_records(scan: Scan) -> Iterator[Record]:
    """Yield the records of a scan, by partition, then offset. Memory holds about a thousand.

    Raises:
        SegmentDamaged: a file of the scan is damaged although its footer is intact, or it was deleted.
    """
    match scan:
        case MemoryScan(records=records):
            yield from records
        case TableScan(rows=rows):
            yield from (Record(**row) for row in rows.to_pylist())
        case ParquetScan(files=files, ranges=ranges):
            for file in files:
                yield from _read_file(file, scan.storage, ranges)
        case LinesScan(files=files):
            for file in files:
                yield from _read_lines(file, scan)
        case KafkaScan():
            from tidemill.log.kafka_reading import read_scan

            yield from read_scan(scan)
        case _:
            assert_never(scan)


def in_memory(scan: Scan, *, most: int) -> Scan:
    """The records of Kafka in memory; the scan unchanged if they are more than `most`, or 256 bytes for each.

    Scans of other logs are unchanged, too.

    Raises:
        LogUnreachable: the cluster does not answer.
        OffsetsLost: the log has deleted some of them since the scan was made.
    """
    if not isinstance(scan, KafkaScan) or sum(map(len, scan.ranges)) > most:
        return scan
    from tidemill.log.kafka_reading import fetched

    return fetched(scan, most=most * _RECORD_BYTES) or scan


def read_topic(
    log: Log,
    name: str,
    *,
    partition: int | None = None,
    from_offset: int | None = None,
    limit: int | None = None,
) -> Iterator[Record]:
    """Yield the records that a topic holds now, partition by partition; at most `limit`.

    Args:
        log: the log that has the topic.
        name: the name of the topic.
        partition: read only this one; otherwise all.
        from_offset: where to begin in each partition; otherwise at its start.
        limit: the most records to read from all partitions together.

    Raises:
        LogInputError: there is no such partition, or `from_offset` is past its end.
        OffsetsLost: `from_offset` is below its start.
        SegmentDamaged: a file is damaged or was deleted.
    """
    topic = log.topic(name)
    bounds = log.bounds(name)
    left = limit
    for number in sorted(bounds) if partition is None else [partition]:
        place = refusals.check_partition(topic, number)
        wanted = held = bounds.get(number, OffsetRange(place, 0, 0))
        if from_offset is not None:
            refusals.check_start(held, from_offset)
            wanted = OffsetRange(place, from_offset, held.until_offset)
        if left is not None:
            wanted = wanted.take(left)
            left -= len(wanted)
        yield from read_records(log.scan(topic.topic_id, [wanted]))


def _read_file(path: str, storage: Mapping[str, str], ranges: Sequence[OffsetRange]) -> Iterator[Record]:
    try:
        with pq.ParquetFile(opened(path, storage), page_checksum_verification=True) as file:
            wanted = [group for group in range(file.num_row_groups) if _touches(file.metadata.row_group(group), ranges)]
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=wanted):
                yield from _of_ranges(batch, ranges)
    except (pa.ArrowException, OSError) as error:
        raise SegmentDamaged(
            f"segment {path} cannot be read: {error}", fix="bring the file back from a copy"
        ) from error


def check_whole(scan: Scan) -> None:
    """Refuse files of a landing zone that lack offsets. Reads all of them, and nothing of other logs.

    Other logs say when they make a scan that they lack some.

    Raises:
        OffsetsLost: no file holds some of the offsets, and they may not be missing.
        SegmentDamaged: a file cannot be unpacked.
    """
    if isinstance(scan, LinesScan) and scan.dense and (absent := [*outside(scan.ranges, _ranges_of(scan))]):
        raise refusals.in_no_file(absent)


def _ranges_of(scan: LinesScan) -> Iterator[OffsetRange]:
    """The offsets that count of each file: those before the first one of the next file."""
    for path, (partition, first) in zip(scan.files, scan.firsts, strict=True):
        end = first + len(lines_of(path, _content(path, scan.storage)))
        end = min(end, end_of(partition, first, scan.firsts))
        yield OffsetRange(TopicPartition(scan.ranges[0].topic_partition.topic, partition), first, end)


def _content(path: str, storage: Mapping[str, str]) -> bytes:
    source = opened(path, storage)
    content: bytes = Path(source).read_bytes() if isinstance(source, str) else source.read()
    return content


def _read_lines(path: str, scan: LinesScan) -> Iterator[Record]:
    topic, content = scan.ranges[0].topic_partition.topic, _content(path, scan.storage)
    for partition, offset, value in records_of(path, content, scan.ranges, scan.firsts):
        yield Record(topic=topic, partition=partition, offset=offset, timestamp=UNKNOWN, value=value)


def _touches(group: pq.RowGroupMetaData, ranges: Sequence[OffsetRange]) -> bool:
    places = {group.column(index).path_in_schema: index for index in range(group.num_columns)}
    partition = group.column(places["partition"]).statistics
    offsets = group.column(places["offset"]).statistics
    return any(
        item.topic_partition.partition == partition.min
        and item.from_offset <= offsets.max
        and offsets.min < item.until_offset
        for item in ranges
    )


def _of_ranges(batch: pa.RecordBatch, ranges: Sequence[OffsetRange]) -> Iterator[Record]:
    times = batch.schema.get_field_index("timestamp")
    for row in batch.set_column(times, "timestamp", in_years(batch["timestamp"])).to_pylist():
        if any(row["partition"] == r.topic_partition.partition and row["offset"] in r for r in ranges):
            yield Record(
                topic=row["topic"],
                partition=row["partition"],
                offset=row["offset"],
                timestamp=row["timestamp"],
                key=row["key"],
                value=row["value"],
                headers=tuple((h["key"], h["value"]) for h in row["headers"] or ()),
            )


def first_at(log: Log, name: str, partition: int, moment: datetime) -> int:
    """Find the offset for `Log.offset_at` by reading. Statistics tell which files can be skipped.

    It opens the footer of each file from the first one on, until a record is found. A binary search would be wrong:
    producers set the times of records, so times need not rise with offsets, and the first record with a later time may
    lie before files whose times are all earlier. Names of segments hold offsets only.
    """
    held = log.bounds(name)[partition]
    scan = log.scan(log.topic(name).topic_id, [held])
    if isinstance(scan, ParquetScan):
        firsts = (_first_since(file, scan.storage, moment, held) for file in scan.files)
        found = (offset for offset in firsts if offset is not None)
    else:
        found = (r.offset for r in read_records(scan) if r.timestamp >= moment)
    return next(found, held.until_offset)


def _first_since(path: str, storage: Mapping[str, str], moment: datetime, held: OffsetRange) -> int | None:
    """The first of the offsets `held` in a file whose record has `moment` or a later time."""
    try:
        with pq.ParquetFile(opened(path, storage)) as file:
            groups = [g for g in range(file.num_row_groups) if _ends(file.metadata.row_group(g)) >= moment]
            if not groups:
                return None
            rows = file.read_row_groups(groups, columns=["offset", "timestamp"])
    except (pa.ArrowException, OSError) as error:
        raise SegmentDamaged(
            f"segment {path} cannot be read: {error}", fix="bring the file back from a copy"
        ) from error
    late = rows["offset"].filter(pc.greater_equal(in_years(rows["timestamp"]), moment))
    there = pc.and_(pc.greater_equal(late, held.from_offset), pc.less(late, held.until_offset))
    first: int | None = pc.min(late.filter(there)).as_py()
    return first


def _ends(group: pq.RowGroupMetaData) -> datetime:
    """The latest timestamp in a row group."""
    found = next(c for i in range(group.num_columns) if (c := group.column(i)).path_in_schema == "timestamp")
    return nearest_moment(found.statistics.max_raw)
