"""Whether what a seed left is what its raw log gives: nothing lost, nothing doubled, nothing otherwise wrong."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chaos.recompute import Contents, Log, Place, Recomputation, Row, Step
from chaos.weather import FILES, Absence, absences
from chaos.world import LARGE, PIPELINE, World
from support.projects import rows_of
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Repair, Rewind, SideOutput
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.work import Kind, Live
from tidemill.core.protocol.events import Claimed, Committed, Event, Planned
from tidemill.log.reading import read_topic
from tidemill.project.project import Project

KEYS = {
    "sums": ("window_start", "user"),
    "large": ("id", "user", "amount"),
    "visits": ("window_start", "user"),
    "threes": ("user", "amount"),
    "totals": ("user",),
    "quarantine": ("topic", "partition", "offset"),
    "late": ("topic", "partition", "offset", "table_name"),
}
"""What tells the rows of a table apart; in `large` equal rows are as many as there were equal records.

In `threes` they are as many as there were equal firings.
"""

VALUES = {"sums": ("amount",), "visits": ("window_end", "amount"), "totals": ("amount",)}
"""What a row of a table says beside how many records it is about, where no two rows have the same key."""


@dataclass(slots=True)
class Judgement:
    """What was found. `lost` and `doubled` count records; `wrong` says what is wrong in another way.

    `weather` counts what happened around the batches.
    """

    batches: int = 0
    retries: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    weather: Counter[str] = field(default_factory=Counter)
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


def judge(world: World, also: Mapping[str, str] = MappingProxyType({})) -> Judgement:
    """Look at everything that the workers of a world left.

    `also` are hashes of declarations that differ from a wording only in what no number depends on, each with that
    wording.
    """
    project = world.load()
    events = [entry.event for entry in project.ledger(PIPELINE).entries()]
    flows = world.flows()
    own = {flow.logical_hash: wording for wording, flow in flows.items()}
    steps = steps_of(events, {**own, **also})
    published = {sink.table for flow in flows.values() for sink in flow.sinks}
    large, kinds = LARGE if "large" in published else math.inf, "totals" in published
    expected = Recomputation(steps, raw_log(world), large=large, kinds=kinds)
    judgement = Judgement(batches=len(steps), retries=sum(isinstance(e, Claimed) for e in events))
    judgement.kinds.update(str(step.kind) for step in steps)
    judgement.weather["decisions"] = sum(step.decided is not None for step in steps)
    judgement.weather["batches without a partition"] = sum(bool(step.missing) for step in steps)
    judgement.weather["partitions away"] = len(list(absences(world)))
    judgement.weather["renames"] = len(list(world.lake.glob("names/*")))
    check_tiling(expected, judgement)
    compare(contents_of(project), expected.contents, judgement)
    judgement.wrong += expected.wrong
    judgement.wrong += _wrong_commits([e for e in events if isinstance(e, Committed)], expected)
    judgement.wrong += wrong_sights(moments_of(events, steps), list(absences(world)))
    judgement.wrong += strangers(world.lake)
    return judgement


def raw_log(world: World) -> Log:
    """The values of every partition, by offset."""
    found: dict[Place, list[bytes | None]] = {}
    for topic in world.log.topics():
        for partition in range(topic.partitions):
            records = read_topic(world.log, topic.name, partition=partition)
            found[topic.name, partition] = [record.value for record in records]
    return found


def steps_of(events: list[Event], wordings: Mapping[str, str]) -> list[Step]:
    """What each committed batch had planned to do, in the order of the commits, by the wording that its plan names."""
    plans = {e.plan.batch_id: e.plan for e in events if isinstance(e, Planned)}
    return [_step(plans[e.batch_id], e, wordings) for e in events if isinstance(e, Committed)]


def _step(plan: BatchPlan, commit: Committed, wordings: Mapping[str, str]) -> Step:
    ranges: dict[Place, tuple[range, ...]] = {}
    for topic, items in plan.reads.items():
        for item in items:
            place = (topic, item.topic_partition.partition)
            ranges[place] = (*ranges.get(place, ()), range(item.from_offset, item.until_offset))
    live = plan.live or Live(topics={})
    return Step(
        batch_id=plan.batch_id,
        kind=plan.kind,
        ranges=ranges,
        drain=plan.drains,
        completes=plan.kind is Kind.BACKFILL and commit.position.backfill is None,
        gives_up=plan.job is not None and not plan.job.supersedes,
        late=isinstance(plan.work, Repair) and plan.work.source is SideOutput.LATE,
        back_to=plan.work.position.batch_id if isinstance(plan.work, Rewind) else 0,
        wording=wordings[plan.logical_hash],
        decided=live.redefined.reason.why if live.redefined is not None else None,
        shown=frozenset(_place(r.topic_partition) for topic in plan.topics.values() for r in topic.ranges),
        missing=frozenset(map(_place, live.missing or ())),
        gone=frozenset(_place(each.place) for each in live.gone or ()),
    )


def _place(found: TopicPartition) -> Place:
    return found.topic, found.partition


@dataclass(frozen=True, slots=True)
class Moment:
    """When a live batch may have looked at the log: from its clock to its commit, in seconds since 1970."""

    step: Step
    since: float
    until: float


def moments_of(events: list[Event], steps: list[Step]) -> list[Moment]:
    """That of each live batch."""
    clocks = {e.plan.batch_id: e.plan.clock.timestamp() for e in events if isinstance(e, Planned)}
    ends = {e.batch_id: e.at.timestamp() for e in events if isinstance(e, Committed)}
    return [Moment(s, clocks[s.batch_id], ends[s.batch_id]) for s in steps if s.kind is Kind.LIVE]


def wrong_sights(moments: list[Moment], away: list[Absence]) -> Iterator[str]:
    """What a batch says of the log that the log never was while it ran."""
    for moment in moments:
        step, since, until = moment.step, moment.since, moment.until
        for place in sorted(step.missing):
            if not any(a.place == place and a.way != FILES and a.may_be_in(since, until) for a in away):
                yield f"batch {step.batch_id}: says that {place} was missing, which was there"
        read = {place for place, parts in step.ranges.items() if any(parts)}
        for absence in (a for a in away if a.covers(since, until)):
            if absence.place in read or (absence.way != FILES and absence.place in step.shown):
                yield f"batch {step.batch_id}: saw {absence.place}, which was away all the time"


def strangers(lake: Path) -> Iterator[str]:
    """Whoever wrote a published table beside the pipeline, and every other pipeline that the lake knows."""
    for name in sorted(path.name for path in (lake / "pipelines").iterdir()):
        if name != PIPELINE:
            yield f"the lake has a pipeline {name}, which should have been refused"
    for file in sorted((lake / "published").glob("*/_delta_log/*.json")):
        for action in map(json.loads, file.read_text().splitlines()):
            writer = action.get("txn", {}).get("appId", PIPELINE)
            if writer.partition("/")[0] != PIPELINE:
                yield f"{file.parts[-3]} has a transaction of {writer}: version {int(file.stem)}"


def check_tiling(expected: Recomputation, judgement: Judgement) -> None:
    """Every offset was read by exactly one live batch that was not taken back."""
    judgement.lost.update(f"offset {offset} of {place} is in no commit" for place, offset in expected.lost)
    judgement.doubled.update(f"offset {offset} of {place} is in two commits" for place, offset in expected.doubled)


def contents_of(project: Project) -> Contents:
    """The rows that readers see."""
    own = {name: project.table_uri(PIPELINE, name) for name in ("quarantine", "late")}
    uris = {**{name: project.published_uri(name) for name in KEYS if name not in own}, **own}
    return {name: [_row(name, row) for row in rows_of(uri)] for name, uri in uris.items()}


def _row(table: str, row: Mapping[str, Any]) -> Row:
    key = tuple(row[c] for c in KEYS[table])
    return Row(key, row.get("n", 1), tuple(row[c] for c in VALUES.get(table, ())))


def compare(found: Contents, expected: Contents, judgement: Judgement) -> None:
    """Count the records that tables miss, and those that they have too often."""
    for table, rows in expected.items():
        there, wanted = _records(found[table]), _records(rows)
        for key, count in (wanted - there).items():
            judgement.lost[f"{table} {_shown(key)}"] += count
        for key, count in (there - wanted).items():
            judgement.doubled[f"{table} {_shown(key)}"] += count
    for table in VALUES.keys() & expected.keys():
        judgement.wrong += _wrong_rows(table, found[table], {row.key: row for row in expected[table]})


def _wrong_rows(table: str, found: list[Row], expected: Mapping[tuple[Any, ...], Row]) -> Iterator[str]:
    for key, count in Counter(row.key for row in found).items():
        if count > 1:
            yield f"{table} {_shown(key)} is there {count} times"
    for row in found:
        wanted = expected.get(row.key)
        # What the number of records says is lost or doubled.
        if wanted and row.values != wanted.values:
            yield f"{table} {_shown(row.key)} is {row.values}, expected {wanted.values}"


def _wrong_commits(commits: list[Committed], expected: Recomputation) -> Iterator[str]:
    for commit in commits:
        if commit.position.watermark != expected.watermarks[commit.batch_id]:
            wanted = expected.watermarks[commit.batch_id]
            yield f"batch {commit.batch_id}: the watermark is {commit.position.watermark}, expected {wanted}"
        for topic, account in commit.accounts.items():
            there = {name: getattr(account, name) for name in ("read", "aggregated", "filtered", "rejected", "late")}
            wanted_account = expected.accounts.get((commit.batch_id, topic), Counter[str]())
            differs = commit.kind is Kind.LIVE and there != {name: wanted_account[name] for name in there}
            if not account.balances or differs:
                yield f"batch {commit.batch_id}: {topic}: {account}, expected {dict(wanted_account)}"


def _records(rows: list[Row]) -> Counter[tuple[Any, ...]]:
    counted: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        counted[row.key] += row.records
    return counted


def _shown(key: tuple[Any, ...]) -> str:
    return " ".join(str(part) for part in key)
