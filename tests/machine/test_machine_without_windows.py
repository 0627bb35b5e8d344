"""Everything that can happen to buffers and totals, in any order, against a model: no record of theirs is late."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from machine.machine import Machine
from machine.model import Model, Records, offsets_of
from machine.test_machine import PHASES
from support.projects import Mill
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed
from tidemill.project.project import Project

COUNT = 3


class NeverLate(Model):
    """Nothing that comes is too late, so late records are none."""

    def is_late(self, second: int) -> bool:
        return False

    def admit(self, places: Collection[tuple[int, int]], plan: BatchPlan, records: Records) -> None:
        """There are none."""


class TotalsModel(NeverLate):
    """The latest totals of each user."""

    def expected(self, records: Records) -> Any:
        found: dict[str, list[int]] = {}
        for place in self.places("aggregated"):
            _, user, amount = records[place] or (0, "", 0)
            found.setdefault(user, []).append(amount)
        return {user: (len(amounts), sum(amounts)) for user, amounts in found.items()}


@dataclass
class BuffersModel(NeverLate):
    """Each `COUNT` records of a user are a row. `read` has them in the order in which live batches took them."""

    read: list[tuple[str, int]] = field(default_factory=list)

    def follow(self, plan: BatchPlan, commit: Committed, records: Records) -> None:
        super().follow(plan, commit, records)
        if plan.kind is Kind.LIVE:
            for item in sorted(plan.reads.get("events", ()), key=lambda r: r.topic_partition.partition):
                places = [(item.topic_partition.partition, offset) for offset in offsets_of(item)]
                facts = [records[place] for place in places if self.fates[place] == "aggregated"]
                self.read += [fact[1:] for fact in facts if fact is not None]

    def expected(self, records: Records) -> Any:
        found = []
        for user in {user for user, _ in self.read}:
            mine = [amount for of, amount in self.read if of == user]
            whole = [mine[at : at + COUNT] for at in range(0, len(mine) - COUNT + 1, COUNT)]
            found += [(user, len(amounts), sum(amounts)) for amounts in whole]
        return sorted(found)


class WithoutBounds(Machine):
    """A pipeline whose rows have no bounds of windows."""

    said = ""

    @classmethod
    def declared(cls, folder: Path, session: Any) -> Mill:
        """The pipeline."""
        mill = super().declared(folder, session)
        path, contract = folder / "pipelines" / "pipeline.py", folder / "data_contracts" / "sums.odcs.yaml"
        lines = path.read_text().replace("import Calendar, ", "import Calendar, CountPolicy, TumblingBuffer, ")
        told = [line for line in lines.splitlines() if ".window(" not in line]
        at = next(number for number, line in enumerate(told) if ".aggregate(" in line)
        path.write_text("\n".join([*told[:at], cls.said, *told[at:]]).replace(', trigger="on_close"', ""))
        kept = [line for line in contract.read_text().splitlines() if "name: window_" not in line]
        contract.write_text("\n".join(kept).replace(", primaryKeyPosition: 2", "").replace(*cls.of_key()))
        return Mill(Project.load(folder), session, mill.name)

    @classmethod
    def of_key(cls) -> tuple[str, str]:
        """What is said of the key in the contract, and what shall be."""
        return "", ""


class Totals(WithoutBounds):
    """The latest totals of each user, without a window."""

    model_of = TotalsModel

    @staticmethod
    def as_shown(rows: list[dict[str, Any]]) -> Any:
        """Published rows, as the model expects them."""
        assert len({r["user"] for r in rows}) == len(rows)
        return {r["user"]: (r["n"], r["amount"]) for r in rows}


class Buffers(WithoutBounds):
    """Buffers of the records of each user, which fire when they are full."""

    model_of = BuffersModel
    said = f"        .window(TumblingBuffer(CountPolicy({COUNT})))"

    @classmethod
    def of_key(cls) -> tuple[str, str]:
        """A user has several rows."""
        return ", primaryKey: true", ""

    @staticmethod
    def as_shown(rows: list[dict[str, Any]]) -> Any:
        """Published rows, as the model expects them."""
        return sorted((r["user"], r["n"], r["amount"]) for r in rows)


BOTH = pytest.mark.parametrize("machine", [Totals, Buffers])


@BOTH
def test_whatever_happens_readers_see_what_one_computation_gives(machine: type[Machine]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=12, stateful_step_count=15, phases=PHASES))


@BOTH
@pytest.mark.long
def test_whatever_happens_for_long_readers_see_what_one_computation_gives(machine: type[Machine]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=40, stateful_step_count=30, phases=PHASES))


@BOTH
@pytest.mark.long
@pytest.mark.spark
def test_whatever_happens_on_spark_readers_see_what_one_computation_gives(machine: type[Machine], spark: Any) -> None:
    on_spark = type(f"Spark{machine.__name__}", (machine,), {"session": spark})
    run_state_machine_as_test(on_spark, settings=settings(max_examples=10, stateful_step_count=15, phases=PHASES))
