"""A process that writes to a file log: KIND ROOT NAME. Prints what was acknowledged, a line each."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tidemill.core.errors import LogInputError
from tidemill.log.file import FileLog
from tidemill.log.producer import Producer, RoundRobin
from tidemill.log.records import NewRecord


def append(root: Path, name: str) -> None:
    """Forty appends of one to three records each, once the file `go` is there."""
    log = FileLog(root)
    print("ready", flush=True)
    while not (root.parent / "go").exists():
        time.sleep(0.001)
    for number in range(40):
        placed = log.append("t", 0, [NewRecord(value=f"{name}-{number}".encode())] * (1 + number % 3))
        print(f"{name}-{number}", placed.from_offset, placed.until_offset, flush=True)


def produce(root: Path, name: str) -> None:
    """Numbered batches of the numbers 0 to 99, 100 to 199, ... until killed."""
    producer = Producer(FileLog(root), "t", partitioning=RoundRobin(), producer_id=name)
    for sequence in range(1_000_000):
        producer.append([NewRecord(value=b"%d" % (sequence * 100 + n)) for n in range(100)], sequence=sequence)
        print(sequence, flush=True)


def stall(root: Path, name: str) -> None:
    """An append that stands still when everything is written but nothing is linked."""

    def stand_still(source: Path, target: Path) -> None:
        print("stalled", flush=True)
        time.sleep(600)

    os.link = stand_still
    FileLog(root).append("t", 0, [NewRecord(value=name.encode())] * 1000)


def create(root: Path, name: str) -> None:
    """Ten topics; prints those that this process made."""
    for number in range(10):
        try:
            topic = FileLog(root).create_topic(f"t{number}", int(name))
        except LogInputError:
            continue
        print(topic.name, topic.topic_id, flush=True)


if __name__ == "__main__":
    kinds = {"append": append, "produce": produce, "stall": stall, "create": create}
    kinds[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
