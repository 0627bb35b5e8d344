"""Everything that can happen to a pipeline of sessions, in any order, against a model of a few dictionaries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from machine.machine import Machine
from machine.model import SessionModel
from machine.test_machine import PHASES


class Sessions(Machine):
    """A pipeline of sessions."""

    model_of = SessionModel


def test_whatever_happens_readers_see_the_sessions_that_one_computation_gives() -> None:
    run_state_machine_as_test(Sessions, settings=settings(max_examples=8, stateful_step_count=15, phases=PHASES))


@pytest.mark.long
def test_whatever_happens_for_long_readers_see_the_sessions_that_one_computation_gives() -> None:
    run_state_machine_as_test(Sessions, settings=settings(max_examples=60, stateful_step_count=30, phases=PHASES))


@pytest.mark.long
@pytest.mark.spark
def test_whatever_happens_on_spark_readers_see_the_sessions_that_one_computation_gives(spark: Any) -> None:
    machine = type("SparkSessions", (Sessions,), {"session": spark})
    run_state_machine_as_test(machine, settings=settings(max_examples=10, stateful_step_count=15, phases=PHASES))
