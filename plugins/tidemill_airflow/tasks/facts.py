"""What a task says about its batches: as JSON for later tasks, as lines of its log, and as the note of its run.

This module does not import Airflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemill.core.contract.reasons import tally_reasons
from tidemill.core.contract.verdict import Verdict
from tidemill.core.counts import many
from tidemill.core.plan.amendments import Ranges
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange, show_batches
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Audited, Committed, Event, Planned
from tidemill.core.protocol.summary import ACCOUNT, account_of, broken_rules, seconds_of, watermark_json

Facts = Mapping[str, Any]
"""A committed batch as JSON values: what `facts` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Widened:
    """How many records are wanted, and how many are read: all that `batches` have read, which have read wanted ones."""

    wanted: int
    reads: int
    batches: tuple[BatchRange, ...]

    def __str__(self) -> str:
        which = show_batches(self.batches)
        if self.reads == self.wanted:
            return f"{self.wanted:,} records are asked for and read again: those of {which}"
        if self.reads < self.wanted:
            return (
                f"{self.wanted:,} records are asked for, {self.reads:,} are read again, those of {which}: the others "
                "were computed again by the same backfill before, or the log no longer holds them"
            )
        return (
            f"{self.wanted:,} records are asked for, {self.reads:,} are read again: only whole batches can be computed "
            f"again, and these records are in {which}"
        )

    @property
    def json(self) -> dict[str, Any]:
        """How many records were asked for, how many are read, and in which batches, as JSON values."""
        return {"asked": self.wanted, "reads": self.reads, "computed_again": show_batches(self.batches)}


@dataclass(slots=True)
class Known:
    """What is known of batches beside their commits, by batch id. Not everything is known of batches of earlier tries.

    `lags` says how many records of each topic the log held after the batch.
    """

    plans: dict[int, BatchPlan] = field(default_factory=dict)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    lags: dict[int, Mapping[str, int]] = field(default_factory=dict)
    widened: Widened | None = None

    def learn(self, events: Iterable[Event]) -> None:
        """Take plans and verdicts from events of the ledger."""
        for event in events:
            match event:
                case Planned(plan=plan):
                    self.plans[plan.batch_id] = plan
                case Audited(batch_id=batch_id, verdict=verdict):
                    self.verdicts[batch_id] = verdict
                case _:
                    pass


def facts(commit: Committed, known: Known) -> dict[str, Any]:
    """A commit as JSON values. What is not known of a batch of an earlier try is None."""
    account, seconds = account_of(commit), seconds_of(commit)
    plan, verdict = known.plans.get(commit.batch_id), known.verdicts.get(commit.batch_id)
    return {
        "batch_id": commit.batch_id,
        "attempt": commit.attempt,
        "kind": commit.kind.value,
        "offsets": None if plan is None else _offsets(plan.reads),
        "lag": known.lags.get(commit.batch_id),
        **{part: getattr(account, part) for part in ACCOUNT},
        "reasons": dict(tally_reasons(commit.reasons.items())),
        "rows": dict(commit.published),
        "versions": dict(commit.tables),
        "watermark": watermark_json(commit.position.watermark),
        "verdict": None if verdict is None else _verdict(verdict),
        "broken": list(broken_rules(commit)),
        "seconds": seconds,
        "steps": dict(commit.steps or {}),
        "records_per_second": round(account.read / seconds, 1) if seconds > 0 else None,
    }


def _offsets(reads: Ranges) -> dict[str, dict[str, list[list[int]]]]:
    """The ranges of offsets by topic and partition, each as its first offset and the one after its last."""
    found: dict[str, dict[str, list[list[int]]]] = {}
    for topic, ranges in reads.items():
        for r in ranges:
            partitions = found.setdefault(topic, {})
            partitions.setdefault(str(r.topic_partition.partition), []).append([r.from_offset, r.until_offset])
    return found


def _verdict(verdict: Verdict) -> dict[str, Any]:
    broken = [str(result) for result in verdict.broken]
    state = "blocked, and accepted by a person" if verdict.blocks else "warned" if broken else "passed"
    return {"state": state, "rules": len(verdict.results), "broken": broken}


def opening(plan: BatchPlan, attempt: int, lag: Mapping[str, int] | None) -> str:
    """The line of the log with which a batch begins: what it reads, and how many records it leaves in the log."""
    tried = f", attempt {attempt}" if attempt > 1 else ""
    reads = "; ".join(f"{topic} {_short(ranges)}" for topic, ranges in plan.reads.items())
    left = "" if lag is None else f"; {sum(lag.values()):,} more wait in the log"
    records = many(plan.records, "record") + (f" of {reads}" if reads else "")
    return f"batch {plan.batch_id} ({plan.kind.value}){tried}: {records}{left}"


_SHOWN = 4


def _short(ranges: Sequence[Any]) -> str:
    shown = ", ".join(f"{r.topic_partition.partition}:{r.from_offset}-{r.until_offset - 1}" for r in ranges[:_SHOWN])
    return shown + (f" and {len(ranges) - _SHOWN:,} more ranges" if len(ranges) > _SHOWN else "")


def summary(commit: Committed) -> str:
    """The line of the log with which a batch ends."""
    rows = ", ".join(f"{count:,} rows to {table}" for table, count in commit.published.items() if count) or "nothing"
    watermark = watermark_json(commit.position.watermark) or "not known yet"
    broken = "".join(f"; {text}" for text in broken_rules(commit))
    said = f"{account_of(commit)}; published {rows}; watermark {watermark}{broken}"
    return f"batch {commit.batch_id} committed after {seconds_of(commit):.1f} s: {said}"


def rejected(commit: Committed) -> str:
    """What to say about records of a batch that were rejected; empty if there are none."""
    number = account_of(commit).rejected
    if not number:
        return ""
    why = ", ".join(f"{reason} {n:,}" for reason, n in tally_reasons(commit.reasons.items()).items())
    return f"batch {commit.batch_id}: {number:,} rejected, now in quarantine{f': {why}' if why else ''}"


_RESTORING = frozenset((Kind.REWIND.value, Kind.SWITCH.value))
"""Kinds of batches that read nothing, and change what readers see all the same."""


def note_of(batches: Sequence[Facts], widened: Widened | None = None) -> str:
    """The result of a run in one line that tells a good run from one to look at. It begins with what is unusual."""
    total = {part: sum(batch[part] for batch in batches) for part in ACCOUNT}
    rows: dict[str, int] = {}
    for batch in batches:
        for table, number in batch["rows"].items():
            rows[table] = rows.get(table, 0) + number
    published = ", ".join(f"{number:,} rows to {table}" for table, number in rows.items() if number) or "no rows"
    counted = ", ".join(f"{number:,} {part}" for part, number in total.items() if number or part == "read")
    lag = batches[-1]["lag"]
    left = "" if lag is None else f"; lag {sum(lag.values()):,}"
    asked = f"; asked for {widened.wanted:,}, read {widened.reads:,}" if widened is not None else ""
    seconds = sum(batch["seconds"] for batch in batches)
    which = f"{_unusual(batches, total, rows)}{_ids(batches)} ({_kinds(batches)})"
    return f"{which}: {counted}; {published}{left}{asked}; {seconds:.1f} s"


def _unusual(batches: Sequence[Facts], total: Mapping[str, int], rows: Mapping[str, int]) -> str:
    broken, kinds = sum(len(batch["broken"]) for batch in batches), {batch["kind"] for batch in batches}
    found = {
        "nothing repaired": kinds == {Kind.REPAIR.value} and not total["aggregated"],
        "empty": not (total["read"] or any(rows.values()) or kinds & _RESTORING),
        f"{total['rejected']:,} rejected": total["rejected"] > 0,
        f"{total['late']:,} late": total["late"] > 0,
        f"{total['shed']:,} shed": total["shed"] > 0,
        f"{broken:,} rules broken": broken > 0,
    }
    words = [word for word, holds in found.items() if holds]
    return f"{', '.join(words).upper()}: " if words else ""


def _ids(batches: Sequence[Facts]) -> str:
    first, last = batches[0]["batch_id"], batches[-1]["batch_id"]
    return f"batch {first}" if first == last else f"{len(batches)} batches, {first} to {last}"


def _kinds(batches: Sequence[Facts]) -> str:
    kinds = [batch["kind"] for batch in batches]
    if len(set(kinds)) == 1:
        return str(kinds[0])
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))


def left_after(plan: BatchPlan, ends: Mapping[str, Mapping[int, int]]) -> dict[str, int]:
    """How many records of each topic wait after the batch; `ends` has where partitions end, the end not included."""
    after: dict[str, dict[int, int]] = {topic: dict(at.offsets) for topic, at in plan.position.topics.items()}
    for topic, planned in plan.topics.items():
        after.setdefault(topic, {}).update({r.topic_partition.partition: r.until_offset for r in planned.ranges})
    return {
        topic: sum(max(end - after[topic].get(partition, end), 0) for partition, end in ends.get(topic, {}).items())
        for topic in after
    }
