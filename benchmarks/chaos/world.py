"""The project that a seed runs: two inputs, up to five published tables, and a place for records of every fate.

It is declared under changing names and in several wordings, and another project on the same lake declares the same
tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from support.projects import ROOT, SHORT_LIVED
from tidemill.core.bind.flow import Flow
from tidemill.log.file import FileLog
from tidemill.project.project import Project

PIPELINE = "mixed"
"""The first name of the pipeline, by which the lake keeps it."""
OTHER_NAME = "blend"
"""What it is renamed to, and back from."""
STRANGER = "other"
"""A pipeline of another project on the same lake, which declares the same tables."""

TOPICS = {"shop": 2, "web": 1}
"""Partitions of each input."""

DELAY, LATENESS, SIZE = 3, 20, 10
"""Seconds, as in the declaration below: what the oracle counts with.

Windows do not overlap: of one that refuses what another takes, a repair would let all of it in.
"""

LARGE = 50
"""From which amount on a record is a row of `large`, where this table is published."""

GAP, COUNT = 5, 3
"""Seconds between records of two sessions, and how many records a row of `threes` is about, where they are published.

Sessions wait for late records for longer than a seed lasts: which of them are late depends on those that are there.
"""

WORDINGS = {
    "plain": ("user != 'nobody'", frozenset({"nobody"})),
    "the same": ("user <> 'nobody'", frozenset({"nobody"})),
    "fewer": ("user not in ('nobody', 'cleo')", frozenset({"nobody", "cleo"})),
}
"""How the pipeline may be declared: the filter, and whose records that leaves out, so what its numbers mean."""

SPARK_READS = "driver_records = 0\n"
"""What a project says to leave all records to Spark, however few."""

TAKEOVER_AFTER = 5.0
"""Seconds, as in the declaration below."""

_DECLARATION = """
from tidemill import Count, CountPolicy, Pipeline, Session, Sum, Tumbling, TumblingBuffer

with Pipeline("NAME", every="EVERY", idle_timeout=None, takeover_after="5 seconds") as pipeline:
    shop = pipeline.read("shop", contract="shop", event_time="ts", delay="3 s")
    web = pipeline.read("web", contract="web", event_time="ts", delay="3 s")
    known = shop.union(web).filter("FILTER")
    windows = known.key_by("user").window(Tumbling("10 seconds"), allowed_lateness="20 s")
    windows.aggregate(n=Count(), amount=Sum("amount")).publish("sums", contract="sums", trigger="TRIGGER")
"""

_ROWS = """\
    known.filter("amount >= 50").select("id", "user", "amount").publish("large", contract="large")
"""

_KINDS = """\
    by_user = known.key_by("user")
    sessions = by_user.window(Session("5 seconds"), allowed_lateness="1 day")
    sessions.aggregate(n=Count(), amount=Sum("amount")).publish("visits", contract="visits", trigger="TRIGGER")
    threes = by_user.window(TumblingBuffer(CountPolicy(3)))
    threes.aggregate(n=Count(), amount=Sum("amount")).publish("threes", contract="threes")
    by_user.aggregate(n=Count(), amount=Sum("amount")).publish("totals", contract="totals")
"""

_HEAD = """
apiVersion: v3.1.0
kind: DataContract
id: NAME
version: 1.0.0
status: active
schema:
  - name: NAME
    logicalType: object
"""

_EVENTS = """
    customProperties:
      - {property: format, value: json}
    properties:
      - {name: id, logicalType: integer, required: true}
      - {name: ts, logicalType: timestamp, required: true}
      - {name: user, logicalType: string, required: true}
      - {name: amount, logicalType: integer, logicalTypeOptions: {maximum: 1000}}
"""

_SUMS = """
    properties:
      - {name: window_start, logicalType: timestamp, required: true, primaryKey: true, primaryKeyPosition: 1}
      - {name: window_end, logicalType: timestamp, required: true}
      - {name: user, logicalType: string, primaryKey: true, primaryKeyPosition: 2, required: true}
      - {name: n, logicalType: integer, required: true, logicalTypeOptions: {minimum: 1}}
      - {name: amount, logicalType: integer}
"""

_LARGE = """
    properties:
      - {name: id, logicalType: integer, required: true}
      - {name: user, logicalType: string, required: true}
      - {name: amount, logicalType: integer, required: true}
"""

_TOTALS = """
    properties:
      - {name: user, logicalType: string, primaryKey: true, required: true}
      - {name: n, logicalType: integer, required: true, logicalTypeOptions: {minimum: 1}}
      - {name: amount, logicalType: integer}
"""

_CONTRACTS = {
    "shop": _EVENTS,
    "web": _EVENTS,
    "sums": _SUMS,
    "large": _LARGE,
    "visits": _SUMS,
    "threes": _TOTALS.replace("primaryKey: true, ", ""),
    "totals": _TOTALS,
}


@dataclass(frozen=True, slots=True)
class World:
    """One log and one lake, and projects on them that differ in what aggregates: one for each worker at a time.

    Each seat has a guest beside it, a project of somebody else that uses the same Spark.
    """

    folder: Path

    @property
    def seats(self) -> list[Path]:
        """Projects whose workers are clients of a server."""
        return sorted(self.folder.glob("seat-*"))

    @property
    def own(self) -> Path:
        """A project each of whose workers starts a Spark of its own, to which it leaves all records."""
        return self.folder / "own"

    @property
    def log(self) -> FileLog:
        """The log that all of them read."""
        return FileLog(self.folder / "log")

    @property
    def lake(self) -> Path:
        """The lake that all of them write."""
        return self.folder / "lake"

    @property
    def journal(self) -> Path:
        """What happened to the log, a line of JSON for each partition that was away."""
        return self.folder / "journal"

    def load(self) -> Project:
        """The project, for whoever wants to look."""
        return Project.load(self.own)

    def guest_of(self, seat: Path) -> Path:
        """The project of somebody else with the Spark of a seat."""
        return seat.with_name(f"guest-of-{seat.name}")

    def declare(self, folder: Path, name: str, wording: str) -> None:
        """Give a project its declaration, all at once: under a name of the pipeline, in one of WORDINGS."""
        text = (self.folder / "declaration").read_text().replace("NAME", name)
        written = folder / "declaration"
        written.write_text(text.replace("FILTER", WORDINGS[wording][0]))
        written.rename(folder / "pipelines" / "mixed.py")

    def flows(self) -> Mapping[str, Flow]:
        """The pipeline in each of WORDINGS."""
        project = self.folder / "wordings"
        found = {}
        for wording in WORDINGS:
            if not project.exists():
                _make_project(project, "cores = 1")
            self.declare(project, PIPELINE, wording)
            found[wording] = Project.load(project).declared(PIPELINE)
        return found


def make_world(
    folder: Path,
    remotes: Sequence[str],
    *,
    trigger: str,
    every: str = "1 minute",
    spark_writes: bool = False,
    rows: bool = True,
    kinds: bool = False,
    seed: int = 0,
) -> World:
    """Write a seat for each address of a session on a server, and make the topics, which are empty.

    With `spark_writes`, the worker of the last seat writes with Spark, while the others write with delta-rs. Without
    `rows`, `large` is not published. Then the `seed` says in which seats workers aggregate by themselves, and in which
    they leave it to Spark; of three seats, some do either. Beside a table of rows, Spark SQL does it in all of them.
    With `kinds`, there are tables of sessions, of firings of a buffer, and of totals, too.
    """
    world = World(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = _DECLARATION + (_ROWS if rows else "") + (_KINDS if kinds else "")
    (folder / "declaration").write_text(text.replace("TRIGGER", trigger).replace("EVERY", every))
    _make_project(world.own, "cores = 2", SPARK_READS)
    world.declare(world.own, PIPELINE, "plain")
    limits = Random(f"{seed} seats").sample([SPARK_READS, SPARK_READS, "", ""], len(remotes))
    for number, remote in enumerate(remotes):
        writer = 'writer = "spark"\n' if spark_writes and number == len(remotes) - 1 else ""
        seat = folder / f"seat-{number}"
        for project, name in ((seat, PIPELINE), (world.guest_of(seat), STRANGER)):
            _make_project(project, f'{writer}remote = "{remote}"', limits[number])
            world.declare(project, name, "plain")
    for topic, partitions in TOPICS.items():
        world.log.create_topic(topic, partitions)
    return world


def _make_project(folder: Path, spark: str, limits: str = "") -> None:
    pipelines, contracts = folder / "pipelines", folder / "data_contracts"
    pipelines.mkdir(parents=True)
    contracts.mkdir()
    for name, text in _CONTRACTS.items():
        (contracts / f"{name}.odcs.yaml").write_text(_HEAD.replace("NAME", name).rstrip() + text)
    conf = "\n".join(f'"{name}" = "{value}"' for name, value in SHORT_LIVED.items())
    jars = ROOT / ".tidemill" / "jars"
    places = '[lake]\npath = "../lake"\n[log]\npath = "../log"\n'
    text = f'{places}[spark]\njars = "{jars}"\n{spark}\n[spark.conf]\n{conf}\n[limits]\n{limits}'
    (folder / "tidemill.toml").write_text(text)
