"""Batches that follow one another until somebody stops them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from machine.conftest import again
from support.commands import type_command
from support.projects import NO_SPARK, Mill, an_event, somebody
from tidemill.core.errors import AuditBlocked, EngineError, EngineUnreachable, LogUnreachable, TidemillError
from tidemill.core.exit_code import ExitCode
from tidemill.core.protocol.events import Committed, Planned
from tidemill.run import following
from tidemill.run.claiming import Request, next_plan
from tidemill.run.following import follow
from tidemill.run.loop import run_batches

COLUMN = "{name: n, logicalType: integer, required: true}"
LIMITED = COLUMN.replace("}", ", logicalTypeOptions: {maximum: 0}}")


@dataclass
class Somebody:
    """Stops after some pauses; before each of them something may happen."""

    pauses: int
    then: Callable[[int], None] = lambda _: None
    seconds: list[float] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def stopping(self) -> bool:
        return len(self.seconds) >= self.pauses

    def failed(self, error: TidemillError) -> None:
        self.told.append(type(error).__name__)

    def pause(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.then(len(self.seconds))


def followed(mill: Mill, follower: Somebody, **more: Any) -> list[int]:
    """How many records each batch has read."""
    found = follow(again(mill).project, "sums", follower, session=lambda: NO_SPARK, **more)
    return [sum(account.read for account in commit.accounts.values()) for commit in found]


def test_batch_begins_each_time_that_the_pace_of_the_pipeline_has_passed(a_mill: Callable[..., Mill]) -> None:
    mill = a_mill()

    def feed(number: int) -> None:
        if number != 2:
            mill.feed([an_event(number)] * number)

    follower = Somebody(4, feed)
    assert followed(mill, follower) == [1, 3]
    assert all(50 < seconds <= 60 for seconds in follower.seconds)


def test_batch_that_has_read_as_much_as_it_may_is_followed_at_once(a_mill: Callable[..., Mill]) -> None:
    mill, follower = a_mill(), Somebody(2)
    mill.feed([an_event(number) for number in range(7)])
    assert followed(mill, follower, limit=2) == [2, 2, 2, 1]
    assert len(follower.seconds) == 2


def test_bound_of_a_partition_is_a_bound_too(a_mill: Callable[..., Mill]) -> None:
    mill, follower = a_mill(partitions=2, partition_records=2), Somebody(1)
    mill.feed([an_event(number) for number in range(5)])
    mill.feed([an_event(6)], partition=1)
    assert followed(mill, follower) == [3, 2, 1]


def test_records_that_come_meanwhile_wait_for_the_next_one(a_mill: Callable[..., Mill]) -> None:
    mill = a_mill()
    mill.feed([an_event(1)])
    follower = Somebody(2)
    found = follow(again(mill).project, "sums", follower, session=lambda: NO_SPARK)
    next(found)
    mill.feed([an_event(number) for number in range(2, 9)])
    assert follower.seconds == []
    assert next(found).accounts["events"].read == 7
    assert len(follower.seconds) == 1


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The next batches raise these errors; None runs one."""

    def fail(*errors: TidemillError | None) -> None:
        left = [*errors]

        def batches(*given: Any, **more: Any) -> Iterator[Committed]:
            if left and (error := left.pop(0)) is not None:
                raise error
            yield from run_batches(*given, **more)

        monkeypatch.setattr(following, "run_batches", batches)

    return fail


def test_what_may_come_right_by_itself_is_told_and_tried_again(
    a_mill: Callable[..., Mill], failing: Callable[..., None]
) -> None:
    mill, silent = a_mill(), LogUnreachable("Kafka is silent")
    mill.feed([an_event(1)])
    failing(silent, EngineError("once"), silent, EngineUnreachable("twice"), silent)
    follower = Somebody(6)
    assert followed(mill, follower) == [1]
    assert follower.told == ["LogUnreachable", "EngineError", "LogUnreachable", "EngineUnreachable", "LogUnreachable"]


def test_pause_after_a_failure_is_not_shorter_than_five_seconds(
    a_mill: Callable[..., Mill], failing: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mill, follower, clock = a_mill(), Somebody(1), iter([0.0, 100.0, 100.0])
    monkeypatch.setattr(following, "monotonic", lambda: next(clock))
    failing(LogUnreachable("Kafka is silent"))
    assert followed(mill, follower) == []
    assert follower.seconds == [5.0]


def test_batch_between_two_failures_makes_the_engine_well_again(
    a_mill: Callable[..., Mill], failing: Callable[..., None]
) -> None:
    mill, error = a_mill(), EngineError("once more")
    mill.feed([an_event(1)])
    follower = Somebody(5)
    failing(error, error, None, error, error)
    assert followed(mill, follower) == [1]
    assert follower.told == ["EngineError"] * 4


def test_engine_that_fails_three_times_in_a_row_ends_it(
    a_mill: Callable[..., Mill], failing: Callable[..., None]
) -> None:
    mill = a_mill()
    failing(EngineError("1"), EngineError("2"), EngineError("3"))
    follower = Somebody(9)
    with pytest.raises(EngineError, match="3"):
        followed(mill, follower)
    assert follower.told == ["EngineError"] * 2


def test_error_after_somebody_wanted_to_stop_is_raised(
    a_mill: Callable[..., Mill], failing: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mill, follower = a_mill(), Somebody(9)
    stopping = iter([False, True])
    monkeypatch.setattr(follower, "stopping", lambda: next(stopping))
    failing(LogUnreachable("Kafka is silent"))
    with pytest.raises(LogUnreachable):
        followed(mill, follower)
    assert (follower.told, follower.seconds) == ([], [])


def test_batch_of_another_process_is_waited_for(a_mill: Callable[..., Mill]) -> None:
    mill = a_mill()
    mill.feed([an_event(1)])
    ledger = mill.project.ledger("sums")
    request = Request(executor=somebody("another task"), clock=datetime.now(UTC))
    plan = next_plan(mill.project.pipeline("sums"), mill.log, ledger.view(), request)
    ledger.append(lambda _: Planned(plan=plan, executor=request.executor, at=request.clock))

    def gone(number: int) -> None:
        if number == 2:
            mill.run(executor=request.executor)
            mill.feed([an_event(2)] * 3)

    follower = Somebody(3, gone)
    assert followed(mill, follower) == [3]
    assert follower.told == ["Busy", "Busy"]


def test_what_needs_a_person_ends_it(a_mill: Callable[..., Mill]) -> None:
    mill = a_mill(output=lambda text: text.replace(COLUMN, LIMITED))
    mill.feed([an_event(1), an_event(31)])
    follower = Somebody(3)
    with pytest.raises(AuditBlocked):
        followed(mill, follower)
    assert follower.told == []


@pytest.mark.parametrize("other", ["--until-caught-up", "--drain", "--batches=2", "--from-now --by=me --why=so"])
def test_options_that_end_or_decide_are_refused(a_mill: Callable[..., Mill], other: str) -> None:
    said = type_command(a_mill().project.folder, "run", "sums", "--follow", *other.split())
    assert said.code == ExitCode.WRONG
    assert (
        f"--follow runs batches until it is stopped, found {other.partition(' ')[0].partition('=')[0]} as well"
        in said.err
    )


def test_who_and_why_belong_to_a_decision_when_following_too(a_mill: Callable[..., Mill]) -> None:
    said = type_command(a_mill().project.folder, "run", "sums", "--follow", "--by=me", "--why=so")
    assert "--by and --why belong to a decision" in said.err
