"""Everything that can happen to a pipeline of firings, in any order, against the plain rule of triggers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from machine.machine import Machine
from machine.model import LATENESS, SIZE, Model, Records, offsets_of
from machine.test_machine import PHASES
from support.ordered import Batch, Record
from support.ordered_oracle import WindowOracle
from support.projects import NOW, Mill
from tidemill import AfterCount, AfterWatermark, Tumbling
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.records import Moment
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed
from tidemill.core.time.times import micros
from tidemill.project.project import Project

TRIGGER = AfterWatermark(early=AfterCount(2), late=AfterCount(1))
DECLARED = EventWindows(Tumbling(f"{SIZE} s").panes, TRIGGER, f"{LATENESS} s", "accumulating")
SECOND = 1_000_000
SAID = 'trigger=AfterWatermark(early=AfterCount(2), late=AfterCount(1)), accumulation="accumulating", timing="timing"'


@dataclass
class FiringModel(Model):
    """Which records came in which batch, and the watermark after it; backfills and repairs change none of it."""

    turns: list[tuple[list[tuple[int, str, int]], int]] = field(default_factory=list)

    def follow(self, plan: BatchPlan, commit: Committed, records: Records) -> None:
        """Do what a batch did that was no rewind."""
        if plan.kind is Kind.LIVE:
            read = sorted((r.topic_partition.partition, o) for r in plan.reads.get("events", ()) for o in offsets_of(r))
            for place in read:
                self._place(place, records)
            facts = [records[place] for place in read if self.fates[place] == "aggregated"]
            self.turns.append(([fact for fact in facts if fact is not None], commit.position.watermark))
        super().follow(plan, commit, records)

    def admit(self, places: Collection[tuple[int, int]], plan: BatchPlan, records: Records) -> None:
        """Records that came too late for their windows stay late."""

    def expected(self, records: Records) -> Any:
        """Each firing by the plain rule, computed from all records."""
        found, start = [], micros(NOW)
        for user in {user for facts, _ in self.turns for _, user, _ in facts}:
            oracle, mine, batches = WindowOracle(DECLARED), list[int](), list[Batch]()
            for facts, watermark in self.turns:
                own = [(second, amount) for second, of, amount in facts if of == user]
                mine += [amount for _, amount in own]
                batches.append(Batch([Record(start + s * 1_000_000, amount) for s, amount in own], Moment(watermark)))
            oracle.run(batches, Moment())
            for each in oracle.results:
                amounts = [mine[number] for number in each.records]
                row = (each.timing.value, len(amounts), sum(amounts) if amounts else None)
                found.append((each.window.start, user, *row))
        return sorted(found, key=str)


class Firings(Machine):
    """A pipeline whose windows fire early, on time and late, each time as a row of its own."""

    model_of = FiringModel

    @classmethod
    def declared(cls, folder: Path, session: Any) -> Mill:
        """The pipeline."""
        mill = super().declared(folder, session)
        path, contract = folder / "pipelines" / "pipeline.py", folder / "data_contracts" / "sums.odcs.yaml"
        text = path.read_text().replace('trigger="on_close"', SAID)
        path.write_text(text.replace("import Calendar, ", "import AfterCount, AfterWatermark, Calendar, "))
        text = contract.read_text().replace(", primaryKey: true", "")
        text = text.replace(", primaryKeyPosition: 1", "").replace(", primaryKeyPosition: 2", "")
        contract.write_text(f"{text}      - {{name: timing, logicalType: string}}\n")
        return Mill(Project.load(folder), session, mill.name)

    @invariant()
    def the_position_tells_when_the_oldest_open_window_starts(self) -> None:
        """It is that of all records which their windows took, of the windows that the watermark has not closed."""
        if not hasattr(self, "mill"):
            return
        self._follow()
        position, start = self.mill.project.ledger(self.mill.name).view().position, micros(NOW)
        records = [record for turn, _ in cast("FiringModel", self.model).turns for record in turn]
        windows = [start + second // SIZE * SIZE * SECOND for second, _, _ in records]
        still_open = [at for at in windows if at + (SIZE + LATENESS) * SECOND > position.watermark]
        assert (position.oldest_open or {}).get("sums") == min(still_open, default=None)

    @staticmethod
    def as_shown(rows: list[dict[str, Any]]) -> Any:
        """Published rows, as the model expects them."""
        found = [(micros(r["window_start"]), r["user"], r["timing"], r["n"], r["amount"]) for r in rows]
        return sorted(found, key=str)


def test_whatever_happens_readers_see_the_firings_that_one_computation_gives() -> None:
    run_state_machine_as_test(Firings, settings=settings(max_examples=12, stateful_step_count=15, phases=PHASES))


@pytest.mark.long
def test_whatever_happens_for_long_readers_see_the_firings_that_one_computation_gives() -> None:
    run_state_machine_as_test(Firings, settings=settings(max_examples=60, stateful_step_count=30, phases=PHASES))


@pytest.mark.long
@pytest.mark.spark
def test_whatever_happens_on_spark_readers_see_the_firings_that_one_computation_gives(spark: Any) -> None:
    machine = type("SparkFirings", (Firings,), {"session": spark})
    run_state_machine_as_test(machine, settings=settings(max_examples=10, stateful_step_count=15, phases=PHASES))
