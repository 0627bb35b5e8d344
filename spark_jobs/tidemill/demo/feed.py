"""`python -m tidemill.demo.feed`: keeps appending made-up requests to the topic of the reference pipeline."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.errors import ConfigError, TidemillError, UnknownTopic
from tidemill.demo.site import PARTITIONS, TOPIC
from tidemill.demo.traffic import Line, Traffic, lines
from tidemill.log.producer import Producer
from tidemill.log.writable import WritableLog
from tidemill.project.project import Project

RATE = 50
"""Records a second."""

_EVERY = timedelta(seconds=5)
"""Each append makes a file in each partition: more often makes small files, less often makes steps in the charts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """Records to append: so many a second from `begin` on, which look as if they had just arrived."""

    begin: datetime
    rate: int = RATE
    every: timedelta = _EVERY

    def __post_init__(self) -> None:
        if self.rate < 1:
            raise ConfigError(
                f"--rate: expected at least 1 record a second, found {self.rate}", fix="give a larger one"
            )

    def chunk(self, number: int) -> tuple[datetime, Iterator[Line]]:
        """The lines of the chunk of this number, counted from 0, and when the last of them has arrived."""
        start = self.begin + number * self.every
        records = max(round(self.rate * self.every.total_seconds()), 1)
        # The same chunk has the same bytes in every process.
        seed = int(start.timestamp())
        return start + self.every, lines(Traffic(seed=seed, records=records, start=start, span=self.every))


def open_topic(log: WritableLog) -> Producer:
    """A producer of the topic, which is made if it is not there."""
    try:
        log.topic(TOPIC)
    except UnknownTopic:
        log.create_topic(TOPIC, PARTITIONS)
    return Producer(log, TOPIC)


def feed(producer: Producer, what: Feed, *, sleep: Callable[[float], None], most: int | None = None) -> int:
    """Append chunk after chunk, each when it has arrived, and return the number of records. For ever without `most`."""
    count = number = 0
    while most is None or number < most:
        arrived, made = what.chunk(number)
        sleep((arrived - datetime.now(UTC)).total_seconds())
        chunk = list(made)
        keys, values = [line.key for line in chunk], [line.value for line in chunk]
        producer.append(pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}))
        count, number = count + len(chunk), number + 1
    return count


def main(arguments: Sequence[str] | None = None) -> int:
    """Feed a project's log until the process is ended."""
    parser = argparse.ArgumentParser(prog="python -m tidemill.demo.feed", description=__doc__)
    parser.add_argument("--project", help="folder with tidemill.toml (default: found as `tidemill` finds it)")
    parser.add_argument("--rate", type=int, default=RATE, help=f"records a second ({RATE})")
    given = parser.parse_args(arguments)
    try:
        log = Project.load(given.project).log()
        if not isinstance(log, WritableLog):
            raise ConfigError(
                "the project's log is a landing zone of others, which cannot be written to",
                fix="leave out the generator",
            )
        begin = datetime.now(UTC).replace(microsecond=0)
        feed(open_topic(log), Feed(begin=begin, rate=given.rate), sleep=_sleep)
    except TidemillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def _sleep(seconds: float) -> None:
    time.sleep(max(seconds, 0.0))


if __name__ == "__main__":
    sys.exit(main())
