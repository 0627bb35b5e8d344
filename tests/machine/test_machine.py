"""Everything that can happen to a pipeline of windows, in any order, on the tiny engine and on Spark."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from machine.machine import Machine

# A failure is shown as it was found: to make it shorter would take many minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def test_whatever_happens_readers_see_what_one_computation_gives() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=8, stateful_step_count=15, phases=PHASES))


@pytest.mark.long
def test_whatever_happens_for_long_readers_see_what_one_computation_gives() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=40, stateful_step_count=30, phases=PHASES))


@pytest.mark.long
@pytest.mark.spark
def test_whatever_happens_on_spark_readers_see_what_one_computation_gives(spark: Any) -> None:
    machine = type("SparkMachine", (Machine,), {"session": spark})
    run_state_machine_as_test(machine, settings=settings(max_examples=15, stateful_step_count=20, phases=PHASES))
