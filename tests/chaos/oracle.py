"""Whether what a seed left is what its raw log gives: nothing lost, nothing doubled, nothing otherwise wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.recompute import Contents, Cut, Place, Recomputation, Row
from chaos.world import PIPELINE, World
from support.projects import rows_of
from tidemill.core.events import Claimed, Committed, Event, Planned
from tidemill.log.reading import read_topic
from tidemill.project import Project

KEYS = {
    "sums": ("window_start", "user"),
    "large": ("id", "user", "amount"),
    "quarantine": ("topic", "partition", "offset"),
    "late": ("topic", "partition", "offset", "table_name"),
}
"""What tells the rows of a table apart; in `large` equal rows are as many as there were equal records."""


@dataclass(slots=True)
class Judgement:
    """What was found. `lost` and `doubled` count records; `wrong` says what is wrong in another way."""

    batches: int = 0
    retries: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    doubled: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether nothing is lost, doubled or wrong."""
        return not (self.lost or self.doubled or self.wrong)

    @property
    def reasons(self) -> list[str]:
        """The findings in words, the first of each kind."""
        lost = [f"lost: {what} ({count})" for what, count in self.lost.most_common(5)]
        doubled = [f"doubled: {what} ({count})" for what, count in self.doubled.most_common(5)]
        return [*lost, *doubled, *self.wrong[:10]]


def judge(world: World) -> Judgement:
    """Look at everything that the workers of a world left."""
    project = world.load()
    log = raw_log(world)
    events = [entry.event for entry in project.ledger(PIPELINE).entries()]
    commits = {e.batch_id: e for e in events if isinstance(e, Committed)}
    cuts = cuts_of(events)
    judgement = Judgement(batches=len(commits), retries=sum(isinstance(e, Claimed) for e in events))
    check_tiling(cuts, {place: len(values) for place, values in log.items()}, judgement)
    expected = Recomputation.of(cuts, log)
    compare(contents_of(project), expected.contents, judgement)
    judgement.wrong += _wrong_commits(commits, cuts, expected)
    return judgement


def raw_log(world: World) -> Mapping[Place, list[bytes | None]]:
    """The values of every partition, by offset."""
    found: dict[Place, list[bytes | None]] = {}
    for topic in world.log.topics():
        for partition in range(topic.partitions):
            records = read_topic(world.log, topic.name, partition=partition)
            found[topic.name, partition] = [record.value for record in records]
    return found


def cuts_of(events: list[Event]) -> list[Cut]:
    """What each committed batch had planned to read, in the order of the commits."""
    plans = {e.plan.batch_id: e.plan for e in events if isinstance(e, Planned)}
    chosen = [plans[e.batch_id] for e in events if isinstance(e, Committed)]
    return [
        Cut(
            batch_id=plan.batch_id,
            ranges={
                (name, r.topic_partition.partition): range(r.from_offset, r.until_offset)
                for name, topic in plan.topics.items()
                for r in topic.ranges
            },
            drain=plan.drain,
        )
        for plan in chosen
    ]


def check_tiling(cuts: list[Cut], ends: Mapping[Place, int], judgement: Judgement) -> None:
    """Every offset is in exactly one committed range, and each range begins where the one before it ended."""
    reached = dict.fromkeys(ends, 0)
    for cut in cuts:
        for place, offsets in cut.ranges.items():
            if offsets.start != reached[place]:
                judgement.wrong.append(f"batch {cut.batch_id} reads {place} from {offsets.start}, not {reached[place]}")
            reached[place] = offsets.stop
    for place, end in ends.items():
        taken = Counter(offset for cut in cuts for offset in cut.ranges.get(place, ()))
        for offset in range(end):
            where = f"offset {offset} of {place} is in {taken[offset]} commits"
            if not taken[offset]:
                judgement.lost[where] += 1
            elif taken[offset] > 1:
                judgement.doubled[where] += taken[offset] - 1
        if max(taken, default=0) >= end:
            judgement.wrong.append(f"offset {max(taken)} of {place} is committed, but the log ends at {end}")


def contents_of(project: Project) -> Contents:
    """The rows that readers see."""
    own = {name: project.table_uri(PIPELINE, name) for name in ("quarantine", "late")}
    uris = {**{name: project.published_uri(name) for name in KEYS if name not in own}, **own}
    return {name: [_row(name, row) for row in rows_of(uri)] for name, uri in uris.items()}


def _row(table: str, row: Mapping[str, Any]) -> Row:
    key = tuple(row[c] for c in KEYS[table])
    return Row(key, row["n"], (row["amount"],)) if table == "sums" else Row(key)


def compare(found: Contents, expected: Contents, judgement: Judgement) -> None:
    """Count the records that tables miss, and those that they have too often."""
    for table, rows in expected.items():
        there, wanted = _records(found[table]), _records(rows)
        for key, count in (wanted - there).items():
            judgement.lost[f"{table} {_shown(key)}"] += count
        for key, count in (there - wanted).items():
            judgement.doubled[f"{table} {_shown(key)}"] += count
    judgement.wrong += _wrong_sums(found["sums"], {row.key: row for row in expected["sums"]})


def _wrong_sums(found: list[Row], expected: Mapping[tuple[Any, ...], Row]) -> Iterator[str]:
    for key, count in Counter(row.key for row in found).items():
        if count > 1:
            yield f"sums {_shown(key)} is there {count} times"
    for row in found:
        wanted = expected.get(row.key)
        # What the number of records says is lost or doubled.
        if wanted and row.values != wanted.values:
            yield f"sums {_shown(row.key)} is {row.values}, expected {wanted.values}"


def _wrong_commits(commits: Mapping[int, Committed], cuts: list[Cut], expected: Recomputation) -> Iterator[str]:
    for cut in cuts:
        commit = commits[cut.batch_id]
        if commit.position.watermark != expected.watermarks[cut.batch_id]:
            wanted = expected.watermarks[cut.batch_id]
            yield f"batch {cut.batch_id}: the watermark is {commit.position.watermark}, expected {wanted}"
        for topic, account in commit.accounts.items():
            wanted_account = expected.accounts[cut.batch_id, topic]
            there = {name: getattr(account, name) for name in ("read", "aggregated", "filtered", "rejected", "late")}
            if not account.balances or there != {name: wanted_account[name] for name in there}:
                yield f"batch {cut.batch_id}: {topic}: {account}, expected {dict(wanted_account)}"
        ends = {place: offsets.stop for place, offsets in cut.ranges.items()}
        committed = {(t, p): o for t, at in commit.position.topics.items() for p, o in at.offsets.items()}
        if committed != ends:
            yield f"batch {cut.batch_id} commits {committed}, its plan ends at {ends}"


def _records(rows: list[Row]) -> Counter[tuple[Any, ...]]:
    counted: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        counted[row.key] += row.records
    return counted


def _shown(key: tuple[Any, ...]) -> str:
    return " ".join(str(part) for part in key)
