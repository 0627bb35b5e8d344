"""Runs that start when there are records: what counts as a reason, and how Airflow learns of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pages.street import tiny_engine
from support.projects import NO_SPARK, NOW, SUMS_PIPELINE, Mill, an_event, sums
from tidemill.core.errors import AuditBlocked, ConfigError
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.events import Decision
from tidemill.inspect.lag import Lag, LagReader, Sources
from tidemill.project.project import Project
from tidemill.repair.deciding import decide

STRICT = "{name: n, logicalType: integer, required: true, logicalTypeOptions: {maximum: 0}}"


def a_lag(records: int = 3, *, after: int = 1, opened: Any = None) -> Lag:
    return Lag(records=records, next_offsets={}, batch_id=after, open_batch=opened)


def a_batch(batch_id: int = 2, *, blocked: bool = False, decided: Any = None) -> Any:
    return SimpleNamespace(plan=SimpleNamespace(batch_id=batch_id), is_blocked=blocked, decided=decided)


def starts(*looks: tuple[float, Lag]) -> list[bool]:
    from tidemill_airflow.scheduler.records import Reason

    reason = Reason()
    return [reason.to_start(lag, now) for now, lag in looks]


def test_records_start_one_run_and_not_another_while_it_may_be_at_work() -> None:
    assert starts((0, a_lag(0)), (2, a_lag()), (4, a_lag(5)), (61, a_lag(9))) == [False, True, False, False]


def test_records_that_are_left_after_a_commit_start_the_next_run_at_once() -> None:
    assert starts((0, a_lag()), (2, a_lag(opened=a_batch())), (4, a_lag(after=2))) == [True, False, True]


def test_records_that_come_after_everything_was_committed_start_a_run_at_once() -> None:
    assert starts((0, a_lag()), (2, a_lag(0, after=2)), (4, a_lag(after=2))) == [True, False, True]


def test_runs_that_commit_nothing_start_ever_later() -> None:
    looks = [(float(now), a_lag()) for now in range(0, 4_000, 10)]
    times = [now for (now, _), start in zip(looks, starts(*looks), strict=True) if start]
    assert times == [0, 60, 180, 420, 900, 1800, 2700, 3600]


def test_batch_that_somebody_works_at_is_given_time_to_commit() -> None:
    held = a_lag(opened=a_batch())
    assert starts((0, held), (59, held), (60, held), (62, held)) == [False, False, True, False]


def test_blocked_batch_starts_nothing_until_somebody_decides_and_then_a_run_at_once() -> None:
    blocked, decided = a_lag(opened=a_batch(blocked=True)), a_lag(opened=a_batch(blocked=True, decided="retry"))
    assert starts((0, blocked), (9_999, blocked), (10_000, decided), (10_002, decided)) == [False, False, True, False]


@pytest.fixture
def mill(tmp_path: Path) -> Iterator[Mill]:
    with tiny_engine():
        yield sums(tmp_path, NO_SPARK, partitions=2)


def test_lag_counts_what_is_not_committed_and_knows_the_first_of_it(mill: Mill) -> None:
    reader = LagReader(mill.project, "sums", Sources.of(mill.project.declared("sums")))
    assert (reader.read().records, reader.read().batch_id) == (0, 0)
    mill.feed([an_event(1), an_event(2)])
    mill.feed([an_event(3)], partition=1)
    assert (reader.read().records, {str(tp): o for tp, o in reader.read().next_offsets.items()}) == (
        3,
        {"events-0": 0, "events-1": 0},
    )
    mill.run(limit=1)
    assert reader.read().records == 2
    mill.catch_up(drain=False)
    assert (reader.read().records, reader.read().next_offsets) == (0, {})


def test_topics_of_a_pattern_count_as_soon_as_they_are_there(mill: Mill) -> None:
    reader = LagReader(mill.project, "sums", Sources(topics=(), patterns=("event.*",)))
    mill.log.create_topic("events2", partitions=1)
    mill.log.create_topic("other", partitions=1)
    for topic in ("events", "events2", "other"):
        mill.feed([an_event(1)], topic=topic)
    assert reader.read().records == 2


def test_blocked_batch_waits_for_a_person_until_a_decision(tmp_path: Path) -> None:
    with tiny_engine():
        loose = "{name: n, logicalType: integer, required: true}"
        mill = sums(tmp_path, NO_SPARK, trigger="on_update", output=lambda text: text.replace(loose, STRICT))
        mill.feed([an_event(1)])
        with pytest.raises(AuditBlocked):
            mill.run()
        reader = LagReader(mill.project, "sums", Sources.of(mill.project.declared("sums")))
        assert (reader.read().waits_for_person, reader.read().records) == (True, 1)
        decide(mill.project.ledger("sums"), "sums", Decision.RETRY, Reason(by="ada", why="a trial"), NOW)
        assert reader.read().waits_for_person is False


def a_trigger(project: Project, **changed: Any) -> Any:
    from tidemill_airflow.scheduler.records import RecordsTrigger

    given = {"pipeline": "sums", "project": str(project.folder), "topics": ("events",), "look_every": 0.02}
    return RecordsTrigger(**{**given, **changed})


def test_trigger_fires_once_for_records_and_again_after_their_commit(mill: Mill) -> None:
    async def story() -> list[Any]:
        fired: list[Any] = []
        task = asyncio.create_task(_collect(a_trigger(mill.project), fired))
        mill.feed([an_event(1), an_event(2)])
        await _until(lambda: len(fired) == 1)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(mill.catch_up, drain=False)
        await asyncio.sleep(0.3)
        mill.feed([an_event(3)])
        await _until(lambda: len(fired) > 1)
        await asyncio.sleep(0.3)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return fired

    first, second = asyncio.run(story())
    assert first == {"pipeline": "sums", "records": 2, "after_batch": 0}
    assert second == {"pipeline": "sums", "records": 1, "after_batch": 1}


def test_trigger_survives_a_project_that_cannot_be_read_and_says_why(mill: Mill) -> None:
    from structlog.testing import capture_logs

    settings = mill.project.folder / "tidemill.toml"
    text = settings.read_text()
    settings.write_text("[nothing]\n")

    async def story() -> list[Any]:
        fired: list[Any] = []
        task = asyncio.create_task(_collect(a_trigger(mill.project), fired))
        mill.feed([an_event(1)])
        await _until(lambda: bool(said))
        settings.write_text(text)
        await _until(lambda: bool(fired))
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return fired

    with capture_logs() as said:
        assert len(asyncio.run(story())) == 1
    assert "sums: cannot look for records, again in 1 s: " in said[0]["event"]
    assert "exc_info" not in said[0]


async def _collect(trigger: Any, fired: list[Any]) -> None:
    async for event in trigger.run():
        fired.append(event.payload)


async def _until(holds: Any) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.02)


def test_trigger_is_the_same_one_after_it_was_written_down(mill: Mill) -> None:
    from airflow.models.trigger import Trigger
    from airflow.serialization.encoders import encode_trigger
    from airflow.triggers.base import BaseEventTrigger

    trigger = a_trigger(mill.project, patterns=["web\\..*"])
    path, kwargs = trigger.serialize()
    encoded = encode_trigger(trigger)
    assert path == "tidemill_airflow.scheduler.records.RecordsTrigger"
    assert type(trigger)(**kwargs).serialize() == (path, kwargs)
    stored = Trigger._decrypt_kwargs(Trigger.encrypt_kwargs(encoded["kwargs"]))
    assert BaseEventTrigger.hash(path, stored) == BaseEventTrigger.hash(path, encoded["kwargs"])


def test_dag_of_such_a_pipeline_runs_when_there_are_records_and_at_its_times(mill: Mill) -> None:
    from airflow.serialization.decoders import decode_timetable
    from airflow.serialization.encoders import encode_timetable

    from tidemill_airflow.factory import dags_for

    dag = dags_for(mill.project, start_on_records={"sums": "5 seconds"})["sums"]
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert dag.doc_md.endswith("\n\nRuns also start when the log has records: Airflow looks every 5 seconds.\n")
    timetable: Any = decode_timetable(encode_timetable(dag.timetable))
    assert (timetable.summary, timetable.periodic) == ("Asset or * * * * *", True)
    [(_, asset)] = timetable.asset_condition.iter_assets()
    [watcher] = asset.watchers
    assert (asset.name, watcher.name) == ("sums.records", "sums.records")
    assert watcher.trigger["classpath"].endswith("RecordsTrigger")


def test_other_dags_of_the_pipeline_and_other_pipelines_stay_as_they_are(mill: Mill) -> None:
    from tidemill_airflow.factory import dags_for

    (mill.project.folder / "pipelines" / "more.py").write_text(
        SUMS_PIPELINE.replace("WINDOW", 'Tumbling("1 minute")')
        .replace('"sums"', '"more"')
        .replace('contract="more"', 'contract="sums"')
        .replace("DELAY", "0 s")
        .replace("LATENESS", "0 s")
        .replace("TRIGGER", "on_close")
    )
    dags = dags_for(Project.load(mill.project.folder), start_on_records="sums")
    watched = [name for name, dag in dags.items() if "Asset" in type(dag.timetable).__name__]
    assert watched == ["sums"]
    assert "more" in dags


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["sum"], "start_on_records: there is no pipeline sum"),
        (None, "start_on_records: expected True, False or names of pipelines, found None"),
        ({"sums": "often"}, "start_on_records: sums: not a duration: 'often'"),
        ({"sums": 5}, "start_on_records: sums: not a duration: 5"),
        ({"sums": "-1 s"}, "start_on_records: sums must not be negative"),
        ({"sums": "10 ms"}, "start_on_records: sums: expected a second or more, found '10 ms'"),
        ({"sums": timedelta(0)}, "start_on_records: sums: expected a second or more"),
        ({1: "1 s"}, "start_on_records: expected True, False or names"),
    ],
)
def test_wrong_choice_is_refused_with_what_to_write(mill: Mill, given: Any, told: str) -> None:
    from tidemill_airflow.factory import dags_for

    with pytest.raises(ConfigError, match=told):
        dags_for(mill.project, start_on_records=given)
