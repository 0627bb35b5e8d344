"""Writes records to a topic of Kafka at a steady pace, for so many seconds.

python benchmarks/bench/pace_feed.py SERVERS TOPIC RATE SECONDS
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

TICK_S = 0.02
TIME = '{"ts":"2026-01-01T00:00:00.000Z'
"""How each of the bench's records begins: with a time, in whose place the moment of the tick is written."""


def main(servers: str, topic: str, rate: int, seconds: int) -> int:
    """As many records as `rate` times `seconds`; 1 when some did not arrive."""
    from confluent_kafka import Producer

    from bench.records import Traffic

    settings = {"linger.ms": 20, "compression.type": "lz4", "queue.buffering.max.messages": 2_000_000}
    producer = Producer({"bootstrap.servers": servers, **settings})
    tails = [value[len(TIME) :] for value in Traffic(size=rate).batch(0)["value"].to_pylist()]
    begin, sent = time.monotonic(), 0
    while sent < rate * seconds:
        due = min(int((time.monotonic() - begin) * rate), rate * seconds)
        head = f'{{"ts":"{datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")}'.encode()
        for number in range(sent, due):
            producer.produce(topic, value=head + tails[number % rate])
        producer.poll(0)
        sent = due
        time.sleep(TICK_S)
    return 1 if producer.flush(60) else 0


if __name__ == "__main__":
    # The folder of a script stands first on the path, and this file would hide the package it is part of.
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
