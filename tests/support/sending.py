"""A file log that takes the rows of a batch, as Kafka does, for tests of pipelines that read what others send."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import pytest

from tidemill.log.file import FileLog
from tidemill.log.interface import Message, OutgoingBatch
from tidemill.log.records import NewRecord


def let_files_send(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give file logs the method that makes a log one that sends; the key of a message decides its partition."""
    monkeypatch.setattr(FileLog, "send", _send, raising=False)


def _send(log: FileLog, outgoing: OutgoingBatch, messages: Iterable[Message]) -> bool:
    partitions = sorted(log.bounds(outgoing.topic))
    records: dict[int, list[NewRecord]] = {}
    for message in messages:
        partition = partitions[zlib.crc32(message.key or b"") % len(partitions)]
        record = NewRecord(key=message.key, value=message.value, timestamp=outgoing.at)
        records.setdefault(partition, []).append(record)
    for partition, some in records.items():
        log.append(outgoing.topic, partition, some)
    return True
