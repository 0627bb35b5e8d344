"""What one computation in the order of arrival gives, for the pipeline `sums`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from support.projects import NOW
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.amendments import Repair, SideOutput
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed
from tidemill.core.time.panes import Window
from tidemill.core.time.sessions import merged
from tidemill.core.time.times import micros

SIZE, LATENESS = 10, 20

Place = tuple[int, int]
Records = dict[Place, tuple[int, str, int] | None]
"""Second, user and amount of each record, by partition and offset; None for one that is rejected."""


def offsets_of(item: OffsetRange) -> range:
    """Its offsets."""
    return range(item.from_offset, item.until_offset)


def is_forgotten(fact: tuple[int, str, int] | None, plan: BatchPlan, table: str = "sums") -> bool:
    """Whether the state of the record's window may be gone, and is not computed as a whole."""
    until, job = plan.position.forgotten_until, plan.job
    whole = (job.whole or {}).get(table, ()) if job is not None else ()
    second, _, _ = fact or (0, "", 0)
    start = micros(NOW) + second // SIZE * SIZE * 1_000_000
    refused = until is not None and start + SIZE * 1_000_000 <= until
    return refused and not any(span.first <= start <= span.last for span in whole)


@dataclass
class Model:
    """What became of each record, and how far offsets and time are."""

    fates: dict[Place, str] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    newest: dict[int, int] = field(default_factory=dict)
    watermark: int | None = None
    job: set[Place] = field(default_factory=set)

    def follow(self, plan: BatchPlan, commit: Committed, records: Records) -> None:
        """Do what a batch did that was no rewind."""
        read = [(r.topic_partition.partition, o) for r in plan.reads.get("events", ()) for o in offsets_of(r)]
        match plan.kind:
            case Kind.LIVE:
                for place in read:
                    self._place(place, records)
                self._move(plan, commit, records)
            case Kind.REPAIR:
                self.admit(
                    read if isinstance(plan.work, Repair) and plan.work.source is SideOutput.LATE else (), plan, records
                )
            case Kind.BACKFILL:
                given_up = plan.job is not None and not plan.job.supersedes
                self.job |= set(read)
                if commit.position.backfill is None:
                    self.admit(self.job if not given_up else (), plan, records)
                    self.job = set()
            case _:
                assert plan.kind is Kind.FOLD
                assert not read

    window = f'Tumbling("{SIZE} seconds")'

    def expected(self, records: Records) -> dict[tuple[float, str], tuple[int, int]]:
        """The rows that readers should see: count and sum, by start of the window and user."""
        sums: dict[tuple[float, str], list[int]] = {}
        for place in self.places("aggregated"):
            second, user, amount = records[place] or (0, "", 0)
            start = second // SIZE * SIZE
            if self.watermark is not None and start + SIZE <= self.watermark:
                found = sums.setdefault((NOW.timestamp() + start, user), [0, 0])
                found[0] += 1
                found[1] += amount
        return {key: (n, amount) for key, (n, amount) in sums.items()}

    def places(self, fate: str) -> list[Place]:
        """The records that met this fate."""
        return [place for place, found in self.fates.items() if found == fate]

    def _move(self, plan: BatchPlan, commit: Committed, records: Records) -> None:
        committed = commit.position.topics["events"].offsets
        assert self.offsets.keys() <= committed.keys(), "no partition is forgotten"
        for partition, until in committed.items():
            assert until >= self.offsets.get(partition, 0), "nothing that was read is read again"
            self.offsets[partition] = until
            times = [f[0] for o in range(until) if (f := records[partition, o]) is not None]
            self.newest[partition] = max(times, default=-1)
        ranges = plan.topics["events"].ranges if plan.topics else ()
        least = min([self.newest[r.topic_partition.partition] for r in ranges], default=-1)
        if least >= 0:
            self.watermark = max(least, -1 if self.watermark is None else self.watermark)

    def _place(self, place: Place, records: Records) -> None:
        fact = records[place]
        if fact is None:
            self.fates[place] = "rejected"
        elif fact[1] == "nobody":
            self.fates[place] = "filtered"
        else:
            self.fates[place] = "late" if self.is_late(fact[0]) else "aggregated"

    def is_late(self, second: int) -> bool:
        """Whether its window takes no record any more."""
        end = second // SIZE * SIZE + SIZE
        return self.watermark is not None and end + LATENESS <= self.watermark

    def admit(self, places: Collection[Place], plan: BatchPlan, records: Records) -> None:
        """Late records come into their windows, but into those that are forgotten."""
        for place in places:
            if self.fates[place] == "late":
                self.fates[place] = "late" if self.is_forgotten(records[place], plan) else "aggregated"

    @staticmethod
    def is_forgotten(fact: tuple[int, str, int] | None, plan: BatchPlan) -> bool:
        """Whether no batch of this plan takes the record, because state of its time may be gone."""
        return is_forgotten(fact, plan)


class SessionModel(Model):
    """Records of one user with gaps of at most `SIZE` seconds are one session."""

    window = f'Session("{SIZE} seconds")'

    def expected(self, records: Records) -> dict[tuple[float, str], tuple[int, int]]:
        """Sessions by the plain rule."""
        found: dict[tuple[float, str], tuple[int, int]] = {}
        facts = sorted(fact for place in self.places("aggregated") if (fact := records[place]) is not None)
        for user in {user for _, user, _ in facts}:
            mine = [(second, amount) for second, of, amount in facts if of == user]
            for window in merged(Window(second, second + SIZE) for second, _ in mine):
                if self.watermark is not None and window.end <= self.watermark:
                    amounts = [amount for second, amount in mine if second in window]
                    found[NOW.timestamp() + window.start, user] = (len(amounts), sum(amounts))
        return found

    def is_late(self, second: int) -> bool:
        """Whether the session that it alone makes takes no record any more."""
        return self.watermark is not None and second + SIZE + LATENESS <= self.watermark

    @staticmethod
    def is_forgotten(fact: tuple[int, str, int] | None, plan: BatchPlan) -> bool:
        """Whether the session that it alone makes is forgotten."""
        until, (second, _, _) = plan.position.forgotten_until, fact or (0, "", 0)
        return until is not None and micros(NOW) + (second + SIZE) * 1_000_000 <= until
