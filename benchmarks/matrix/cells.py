"""One pipeline in every combination of log, storage, writer and place of Spark: what readers see, and what was logged.

`python cells.py FILE` reads a JSON document with a place and the addresses of servers, executes the cells of that place
one after the other, and prints a line of JSON for each.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

LOGS, STORAGES, WRITERS = ("file", "kafka"), ("folder", "s3"), ("delta-rs", "spark")
PLACES = ("here", "local", "connect", "cluster")
"""Where records are aggregated: in the process of the batch, or in Spark's workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination."""

    log: str
    storage: str
    place: str
    writer: str

    def __str__(self) -> str:
        return "-".join((self.log, self.storage, self.place, self.writer))


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Where the parts are: addresses, and what a project says of Spark in each place."""

    kafka: str
    s3: str
    spark: Mapping[str, Mapping[str, Any]]


def cells_of(place: str) -> tuple[Cell, ...]:
    """The combinations of a place; first one that needs the jars of all, since a driver takes no more later."""
    found = [Cell(log=lg, storage=st, place=place, writer=w) for lg, st, w in product(LOGS, STORAGES, WRITERS)]
    return tuple(sorted(found, key=lambda c: (c.log != "kafka", c.storage != "s3")))


def run(cell: Cell, servers: Servers, folder: Path) -> dict[str, Any]:
    """All tables of the cell, the hashes of its plans, and how many of its rows the raw log does not give."""
    from support.recovery import TOPICS, a_wide_mill, recomputed
    from tidemill.core.errors import UnknownTopic
    from tidemill.core.protocol.events import Planned

    begin = time.monotonic()
    sections = _sections(cell, servers)
    if cell.log == "kafka":
        with suppress(UnknownTopic):
            _forget(servers.kafka, TOPICS)
    if cell.place != "here":
        # Spark reads the few records of a cell, too.
        sections["driver_records"] = 0
    mill = a_wide_mill(folder / str(cell), None, writer=cell.writer, **sections)
    mill.catch_up()
    tables = mill.everything()
    ours = {name: tables[name] for name in ("sums", "totals")}
    events = (entry.event for entry in mill.project.ledger("wide").entries())
    return {
        **asdict(cell),
        "tables": json.loads(json.dumps(_comparable(tables), default=str)),
        "hashes": [(e.plan.batch_id, e.plan.logical_hash) for e in events if isinstance(e, Planned)],
        "recomputed": ours == recomputed(mill),
        "seconds": round(time.monotonic() - begin, 1),
    }


def _comparable(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Without offsets: in Kafka the end of a transaction takes one, too."""
    return {
        name: [{column: value for column, value in row.items() if column != "offset"} for row in rows]
        for name, rows in tables.items()
    }


def _sections(cell: Cell, servers: Servers) -> dict[str, Any]:
    """Settings of the cell's project."""
    sections: dict[str, Any] = dict(servers.spark[cell.place])
    if cell.storage == "s3":
        sections |= {"lake": {"path": f"s3://matrix/{cell}/lake"}, "s3": {"endpoint": servers.s3}}
    if cell.log == "kafka":
        sections["log"] = {"kafka": servers.kafka}
    elif cell.storage == "s3":
        sections["log"] = {"path": f"s3://matrix/{cell}/log"}
    return sections


def _forget(servers: str, topics: tuple[str, ...]) -> None:
    """The topics of the cell before are gone."""
    from tidemill.core.errors import UnknownTopic
    from tidemill.log.kafka_access import Access
    from tidemill.log.kafka_topics import KafkaTopics

    log = KafkaTopics(Access(servers=servers))
    for topic in topics:
        log.delete_topic(topic)
    for topic in topics:
        with suppress(UnknownTopic):
            while log.topic(topic):
                time.sleep(0.05)


def _lines(path: Path) -> Iterator[str]:
    asked = json.loads(path.read_text())
    servers = Servers(**asked["servers"])
    for cell in (Cell(**c) for c in asked["cells"]):
        yield json.dumps(run(cell, servers, path.parent))


if __name__ == "__main__":
    # The folder of a script stands first on the path; the tests' own folder belongs there.
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
    for line in _lines(Path(sys.argv[1])):
        print(f"cell {line}", flush=True)
