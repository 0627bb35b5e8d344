"""What a seed appends to the log: records of every fate, in steps."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from chaos.recompute import Place
from chaos.world import TOPICS, World
from tidemill.log.records import NewRecord

START = datetime(2026, 1, 1, tzinfo=UTC)
USERS = ("ada", "ben", "cleo", "nobody")
BROKEN: tuple[bytes | None, ...] = (
    None,
    b"",
    b"{cut",
    b"[1, 2]",
    b"\xff\xfe",
    b'{"id": 1, "user": "ada", "amount": 1}',
    b'{"id": 2, "ts": "soon", "user": "ada", "amount": 1}',
    b'{"id": 3, "ts": "2026-01-01T00:00:00Z", "user": "ada", "amount": "many"}',
    b'{"id": 4, "ts": "2026-01-01T00:00:00Z", "user": "ada", "amount": 100000}',
    b'{"id": 5, "ts": "2999-01-01T00:00:00Z", "user": "ada", "amount": 1}',
)
"""Values that no batch can take: not JSON, not an event, against a rule, or from a far future."""


class Producer:
    """Appends the next records of a seed. Event time goes on some seconds with every step."""

    def __init__(self, world: World, random: Random, *, steps: int) -> None:
        self.left = steps
        self.appended = 0
        self._log, self._random = world.log, random
        self._places = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
        self._second, self._next_id = 0, 100
        self._sent: list[bytes] = []

    def step(self, hidden: Collection[Place] = ()) -> None:
        """Append a segment to some partitions that are not hidden, to each in its own disorder."""
        self.left -= 1
        self._second += self._random.randint(4, 15)
        # Putting records aside costs a batch as much as all the rest: not every batch has some.
        messy = self._random.random() < 0.4
        places = self._random.sample(self._places, self._random.randint(1, len(self._places)))
        # In the end every partition has events, so that a watermark comes to be.
        for topic, partition in places if self.left else self._places:
            if (topic, partition) in hidden:
                continue
            records = [NewRecord(value=value) for value in self._values(self._random.randint(1, 12), messy)]
            self._log.append(topic, partition, records)
            self.appended += len(records)

    def _values(self, count: int, messy: bool) -> Iterator[bytes | None]:
        for _ in range(count):
            fate = self._random.random()
            if fate < 0.1 and self._sent:
                # The same event again: it counts again.
                yield self._random.choice(self._sent[-50:])
            elif fate < 0.2 and messy:
                yield self._random.choice(BROKEN)
            elif fate < 0.5 and messy:
                yield self._event(self._random.uniform(0, 120))
            else:
                yield self._event(self._random.uniform(0, 8))

    def _event(self, behind: float) -> bytes:
        self._next_id += 1
        event = {
            "id": self._next_id,
            "ts": (START + timedelta(seconds=self._second - behind)).isoformat(),
            "user": self._random.choice(USERS),
            "amount": self._random.randint(0, 100),
        }
        value = json.dumps(event).encode()
        self._sent.append(value)
        return value
