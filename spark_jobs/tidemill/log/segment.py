"""A segment of a partition: a Parquet file of consecutive records, and what its footer says about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from tidemill.core.errors import SegmentDamaged
from tidemill.core.log.no_copy import without_copy
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.log.identity import ANONYMOUS, OF_FILES
from tidemill.log.records import APPEND_TIME, CREATE_TIME, SEGMENT_SCHEMA
from tidemill.log.writable import LandedBatch, ProducerBatch
from tidemill.stores.interface import Tail

FORMAT_VERSION = 1
TAIL_LENGTH = 64 * 1024
"""This many bytes from the end of a segment nearly always contain its footer."""

_METADATA_KEY = b"tidemill.segment"
_REMEMBERED = {ANONYMOUS: 20, OF_FILES: 200, "": 1_000}
"""How many producers of each kind a partition remembers: one-time producers must not crowd out permanent ones."""
_MAGIC = b"PAR1"

# Spark gives each task at least one row group, and a batch that reads a part of a row group reads all of it.
_GROUP_RECORDS = 65_536
_GROUP_BYTES = 32 * 1024 * 1024


class _Share(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a footer stores about the newest batch of a producer."""

    sequence: int
    first_slot: int
    next_slot: int
    records: int
    from_offset: int
    until_offset: int
    digest: str | None = None


class _Metadata(msgspec.Struct, frozen=True):
    """The identity of a segment, as JSON in its footer."""

    format_version: int
    topic_id: str
    topic: str
    partition: int
    base_offset: int
    producers: dict[str, _Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """What is known about a segment without reading its records.

    `newest` holds the newest share of each producer that appended last to the partition, up to and including this
    segment. It remembers at most 1,000 named producers, the last 200 files and the last 20 other inputs.
    """

    range: OffsetRange
    newest: Mapping[str, LandedBatch] = field(default_factory=dict)


def remember(newest: Mapping[str, LandedBatch], landed: LandedBatch | None) -> Mapping[str, LandedBatch]:
    """Add a share to the newest ones, and forget the producers that have been silent longest."""
    if landed is None:
        return newest
    known = dict(newest) | {landed.batch.producer_id: landed}
    latest = sorted(known.items(), key=lambda item: item[1].range.until_offset)
    kept: list[tuple[str, LandedBatch]] = []
    for kind, most in _REMEMBERED.items():
        kept += [item for item in latest if _kind(item[0]) == kind][-most:]
    return dict(kept)


def _kind(producer_id: str) -> str:
    return next(kind for kind in _REMEMBERED if producer_id.startswith(kind))


def encode(topic_id: str, footer: Footer, records: pa.Table, now: datetime) -> pa.Buffer:
    """Encode the segment as bytes. `records` has `INPUT_SCHEMA`; records without a time get `now`."""
    table = _numbered(footer.range, records, now)
    group = min(_GROUP_RECORDS, _GROUP_BYTES * len(table) // max(table.nbytes, 1))
    sink = pa.BufferOutputStream()
    writer = pq.ParquetWriter(
        sink,
        SEGMENT_SCHEMA,
        compression="zstd",
        use_dictionary=["topic", "partition", "timestampType"],
        column_encoding={
            "offset": "DELTA_BINARY_PACKED",
            "timestamp": "DELTA_BINARY_PACKED",
            "value": "DELTA_LENGTH_BYTE_ARRAY",
        },
        write_statistics=["partition", "offset", "timestamp"],
        write_page_checksum=True,
        store_schema=False,
    )
    writer.add_key_value_metadata({_METADATA_KEY: _metadata(topic_id, footer)})
    writer.write_table(table, row_group_size=max(1, group))
    writer.close()
    return sink.getvalue()


def decode_footer(path: str, tail: Tail, *, topic_id: str, place: TopicPartition, base_offset: int) -> Footer:
    """Decode the footer and check that it agrees with the place and the name of the file.

    `tail` has at least `footer_length(tail.data)` bytes.

    Raises:
        SegmentDamaged: the file is cut short, is not a segment, or belongs to another place.
    """
    try:
        parquet = pq.read_metadata(pa.BufferReader(tail.data))
        raw = (parquet.metadata or {}).get(_METADATA_KEY)
    except (pa.ArrowException, OSError) as error:
        raise damaged(path, "a Parquet footer", str(error)) from error
    if raw is None:
        raise damaged(path, "a segment of a Tidemill log", "a Parquet file of another origin")
    metadata = _decode_metadata(path, raw)
    expected = _Origin(place.topic, topic_id, place.partition, base_offset)
    found = _Origin(metadata.topic, metadata.topic_id, metadata.partition, metadata.base_offset)
    if found != expected:
        raise damaged(path, f"the segment of {expected.text}", f"that of {found.text}")
    whole = _data_end(parquet) + footer_length(tail.data)
    if whole != tail.size or parquet.num_rows < 1:
        raise damaged(path, f"{whole} bytes", f"{tail.size} bytes with {parquet.num_rows} records")
    return Footer(
        range=OffsetRange(place, base_offset, base_offset + parquet.num_rows),
        newest={name: _landed(place, name, share) for name, share in metadata.producers.items()},
    )


def footer_length(tail: bytes) -> int:
    """The length of the footer and the trailer after it, read from the last bytes of a file; 0 if there is none."""
    if len(tail) < 12 or tail[-4:] != _MAGIC:
        return 0
    return int.from_bytes(tail[-8:-4], "little") + 8


def damaged(path: str, expected: str, found: str) -> SegmentDamaged:
    """The error for a file that is not the segment its name promises."""
    return SegmentDamaged(
        f"segment {path} is damaged: expected {expected}, found {found}",
        fix="if somebody copied or renamed a segment here, undo that; otherwise bring the file back from a copy; "
        f"{without_copy()}; before either, `tidemill log trim` gives up all records up to the next segment",
    )


class _Origin(NamedTuple):
    """Where a segment belongs."""

    topic: str
    topic_id: str
    partition: int
    base_offset: int

    @property
    def text(self) -> str:
        return f"topic {self.topic} ({self.topic_id}), partition {self.partition}, first offset {self.base_offset}"


def _metadata(topic_id: str, footer: Footer) -> bytes:
    place = footer.range.topic_partition
    return msgspec.json.encode(
        _Metadata(
            format_version=FORMAT_VERSION,
            topic_id=topic_id,
            topic=place.topic,
            partition=place.partition,
            base_offset=footer.range.from_offset,
            producers={name: _share(landed) for name, landed in footer.newest.items()},
        )
    )


def _decode_metadata(path: str, raw: bytes) -> _Metadata:
    try:
        metadata = msgspec.json.decode(raw, type=_Metadata)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise damaged(path, "readable metadata", str(error)) from error
    if metadata.format_version != FORMAT_VERSION:
        found = f"{metadata.format_version}: a newer Tidemill wrote it"
        raise damaged(path, f"format_version {FORMAT_VERSION}", found)
    return metadata


def _share(landed: LandedBatch) -> _Share:
    batch = landed.batch
    return _Share(
        sequence=batch.sequence,
        first_slot=batch.first_slot,
        next_slot=batch.next_slot,
        records=batch.records,
        from_offset=landed.range.from_offset,
        until_offset=landed.range.until_offset,
        digest=batch.digest,
    )


def _landed(place: TopicPartition, producer_id: str, share: _Share) -> LandedBatch:
    batch = ProducerBatch(
        producer_id=producer_id,
        sequence=share.sequence,
        first_slot=share.first_slot,
        next_slot=share.next_slot,
        records=share.records,
        digest=share.digest,
    )
    return LandedBatch(batch=batch, range=OffsetRange(place, share.from_offset, share.until_offset))


def _numbered(written: OffsetRange, records: pa.Table, now: datetime) -> pa.Table:
    count = len(written)
    place = written.topic_partition
    timestamp = records["timestamp"]
    return pa.table(
        [
            _constant(place.topic, count),
            pa.array(np.full(count, place.partition, dtype=np.int32)),
            pa.array(np.arange(written.from_offset, written.until_offset, dtype=np.int64)),
            timestamp.fill_null(pa.scalar(now, timestamp.type)),
            pc.if_else(timestamp.is_null(), APPEND_TIME, CREATE_TIME).cast(pa.int32()),
            records["key"],
            records["value"],
            records["headers"],
        ],
        schema=SEGMENT_SCHEMA,
    )


def _constant(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), [text]).cast(pa.string())


def _data_end(parquet: pq.FileMetaData) -> int:
    """Where the last column chunk ends and the footer must begin. Otherwise the file was cut."""
    group = parquet.row_group(parquet.num_row_groups - 1) if parquet.num_row_groups else None
    if group is None:
        return len(_MAGIC)
    chunk = group.column(group.num_columns - 1)
    start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    return int(start + chunk.total_compressed_size)
