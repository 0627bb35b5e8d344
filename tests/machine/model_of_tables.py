"""What every table of a pipeline has whose declaration changes: each record by what was declared when it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from machine.model import Model, Place, Records, is_forgotten, offsets_of
from support.projects import NOW
from tidemill.core.plan.amendments import Repair, SideOutput
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed

Declared = Mapping[str, str]
"""The user that the filter of each published table leaves out."""

NAMES = ("sums", "others")


@dataclass
class OfTable(Model):
    """One table: `without` is the user that its filter leaves out, None while batches leave out the table."""

    without: str | None = None
    begins: float = -1
    """Windows that start up to this second lack something, and only backfills publish them."""

    def _place(self, place: Place, records: Records) -> None:
        fact = records[place]
        if fact is None:
            self.fates[place] = "rejected"
        elif self.without is None:
            self.fates[place] = "missed"
        elif fact[1] == self.without:
            self.fates[place] = "filtered"
        else:
            self.fates[place] = "late" if self.is_late(fact[0]) else "aggregated"

    def again(self, name: str, places: set[Place], plan: BatchPlan, records: Records) -> None:
        """What was read again counts by the declaration of now, and is late only where its window is forgotten."""
        watermark, self.watermark = self.watermark, None
        for place in places:
            if not is_forgotten(records[place], plan, name):
                self._place(place, records)
        self.watermark = watermark

    def whole(self, records: Records) -> dict[tuple[float, str], tuple[int, int]]:
        """The windows that lack nothing."""
        return {key: row for key, row in self.expected(records).items() if key[0] > NOW.timestamp() + self.begins}


@dataclass
class Tables:
    """All tables after a batch, and what the last batch declared: None before the first."""

    declared: Declared | None = None
    of: dict[str, OfTable] = field(default_factory=lambda: {name: OfTable() for name in NAMES})
    job: set[Place] = field(default_factory=set)

    @property
    def newest(self) -> int:
        """The newest event that was read, in seconds; -1 when there was none."""
        return max(self.of["sums"].newest.values(), default=-1)

    @property
    def fates(self) -> Mapping[Place, str]:
        """What was read."""
        return self.of["sums"].fates

    def asks(self, declared: Declared) -> bool:
        """Whether somebody must decide before a batch may follow that is declared like this."""
        if self.declared is None:
            return False
        changed = any(self.declared[t] != user for t, user in declared.items() if t in self.declared)
        return changed or (self.newest >= 0 and not declared.keys() <= self.declared.keys())

    def follow(self, plan: BatchPlan, commit: Committed, records: Records, declared: Declared) -> None:
        """Do what a batch did that was no rewind."""
        read = {(r.topic_partition.partition, o) for r in plan.reads.get("events", ()) for o in offsets_of(r)}
        match plan.kind:
            case Kind.LIVE:
                self._take(plan, commit, records, declared)
            case Kind.REPAIR:
                assert not self.asks(declared)
                if isinstance(plan.work, Repair) and plan.work.source is SideOutput.LATE:
                    self.of[plan.work.only or ""].admit(read, plan, records)
            case Kind.BACKFILL:
                self._read_again(plan, commit, records, read, declared)
            case _:
                assert plan.kind in {Kind.FOLD, Kind.SWITCH}
                assert not read
        if plan.kind is not Kind.LIVE:
            self.leave(declared)

    def leave(self, declared: Declared) -> None:
        """A batch that was no live one: it brings no table, and leaves out those that are not declared."""
        self.declared = {t: user for t, user in (self.declared or {}).items() if t in declared}
        for name, table in self.of.items():
            table.without = self.declared.get(name)

    def _take(self, plan: BatchPlan, commit: Committed, records: Records, declared: Declared) -> None:
        assert not self.asks(declared) or (plan.live is not None and plan.live.redefined is not None), (
            "what nobody decided does not happen"
        )
        newest, known = self.newest, self.declared
        for name, table in self.of.items():
            table.without = declared.get(name)
            if known is not None and name in declared and name not in known:
                table.begins = newest
            table.follow(plan, commit, records)
        self.declared = declared

    def _read_again(
        self, plan: BatchPlan, commit: Committed, records: Records, read: set[Place], declared: Declared
    ) -> None:
        given_up = plan.job is not None and not plan.job.supersedes
        assert given_up or not self.asks(declared), "what nobody decided does not happen"
        self.job |= read
        if commit.position.backfill is None:
            for name, table in self.of.items() if not given_up else ():
                table.again(name, self.job, plan, records)
            self.job = set()
