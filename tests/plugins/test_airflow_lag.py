"""The sensor that waits for a pipeline's lag, in a worker or in the triggerer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pages.street import tiny_engine
from support.projects import NO_SPARK, NOW, Mill, an_event, sums
from tidemill.core.errors import ConfigError, LogUnreachable
from tidemill.inspect.lag import LagReader, Sources


@pytest.fixture
def mill(tmp_path: Path) -> Iterator[Mill]:
    with tiny_engine():
        yield sums(tmp_path, NO_SPARK)


def a_sensor(mill: Mill, **more: Any) -> Any:
    from tidemill_airflow import LagSensor

    given = {"pipeline": "sums", "project": str(mill.project.folder), "poke_interval": 0.02, "deferrable": False}
    return LagSensor(task_id="wait", **{**given, **more})


def holds(mill: Mill, **bounds: Any) -> bool:
    return bool(a_sensor(mill, **bounds).poke({}))


def test_sensor_waits_until_everything_is_committed(mill: Mill) -> None:
    sensor = a_sensor(mill, max_records=0)
    assert sensor.execute({}) == {"pipeline": "sums", "batch_id": 0, "records": 0}
    mill.feed([an_event(1), an_event(2)])
    threading.Timer(0.5, mill.catch_up, kwargs={"drain": False}).start()
    assert sensor.execute({}) == {"pipeline": "sums", "batch_id": 1, "records": 0}


def test_bounds_of_records_are_included(mill: Mill) -> None:
    mill.feed([an_event(1), an_event(2), an_event(3)])
    assert [holds(mill, max_records=n) for n in (2, 3)] == [False, True]
    assert [holds(mill, min_records=n) for n in (3, 4)] == [True, False]
    assert [holds(mill, min_records=2, max_records=n) for n in (2, 3)] == [False, True]


def test_age_is_that_of_the_oldest_record_that_is_not_committed(mill: Mill) -> None:
    # The records of these tests are as old as NOW.
    assert (holds(mill, max_age="1 day"), holds(mill, min_age="1 second")) == (True, False)
    mill.feed([an_event(1)])
    assert (holds(mill, max_age="1 day"), holds(mill, max_age="10000 days")) == (False, True)
    assert (holds(mill, min_age=timedelta(days=1)), holds(mill, min_age="10000 days")) == (True, False)
    mill.catch_up(drain=False)
    assert holds(mill, max_age="1 second")


def test_record_is_older_than_a_moment_only_if_the_log_took_it_before(mill: Mill) -> None:
    mill.feed([an_event(1)])
    reader = LagReader(mill.project, "sums", Sources.of(mill.project.declared("sums")))
    lag, moment = reader.read(), timedelta(microseconds=1)
    assert [reader.is_older(lag, NOW + each) for each in (-moment, timedelta(0), moment)] == [False, False, True]


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ({}, "nothing to wait for"),
        ({"max_records": -1}, "max_records: expected a whole number of at least 0, found -1"),
        ({"max_records": True}, "max_records: expected a whole number"),
        ({"max_records": 1.5}, "max_records: expected a whole number"),
        ({"max_records": "many"}, "max_records: expected a whole number"),
        ({"max_records": "9" * 5_000}, "max_records: expected a whole number"),
        ({"min_records": 0}, "min_records: expected a whole number of at least 1, found 0"),
        ({"max_age": "soon"}, "max_age: not a duration: 'soon'"),
        ({"max_age": 5}, "max_age: not a duration: 5"),
        ({"max_age": timedelta(0)}, "max_age must be longer than nothing"),
        ({"min_age": "-5 s"}, "min_age must be longer than nothing"),
        ({"min_records": 5, "max_records": 4}, "can never hold both"),
        ({"min_age": "1 min", "max_age": "60 s"}, "can never hold both"),
        ({"min_age": "1 min", "max_records": 0}, "can never hold both"),
    ],
)
def test_bounds_that_make_no_sense_are_refused_when_the_dag_is_parsed(
    mill: Mill, bounds: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        a_sensor(mill, **bounds)


def test_bounds_may_be_templates_and_are_checked_when_they_are_filled(mill: Mill) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    sensor = a_sensor(mill, max_records="{{ params.most }}")
    sensor.render_template_fields({"params": {"most": 0}})
    assert sensor.poke({})
    wrong = a_sensor(mill, max_records="{{ params.most }}")
    wrong.render_template_fields({"params": {"most": -1}})
    with pytest.raises(AirflowFailException, match="whole number of at least 0"):
        wrong.poke({})


def test_unknown_pipeline_project_or_topic_fails_at_once_with_what_there_is(mill: Mill) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    for more, told in (
        ({"pipeline": "sum"}, "sum"),
        ({"project": "/nowhere"}, "there is no tidemill.toml"),
    ):
        for deferrable in (False, True):
            with pytest.raises(AirflowFailException, match=told):
                a_sensor(mill, max_records=0, deferrable=deferrable, **more).execute({})
    mill.log.delete_topic("events")
    with pytest.raises(AirflowFailException, match="events"):
        a_sensor(mill, max_records=0).execute({})


def test_log_that_does_not_answer_is_an_error_that_airflow_retries(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    _cut(monkeypatch)
    with pytest.raises(LogUnreachable, match="no broker answers"):
        a_sensor(mill, max_records=0).execute({})


def _cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def bounds(*_: Any) -> Any:
        raise LogUnreachable("no broker answers")

    monkeypatch.setattr("tidemill.log.file.FileLog.bounds", bounds)


def deferred(sensor: Any) -> Any:
    """The trigger with which a sensor defers, as the triggerer makes it anew."""
    from airflow.sdk.exceptions import TaskDeferred
    from airflow.sdk.serde import deserialize, serialize

    with pytest.raises(TaskDeferred) as found:
        sensor.execute({})
    assert (found.value.method_name, found.value.timeout) == ("execute_complete", timedelta(seconds=sensor.timeout))
    path, kwargs = found.value.trigger.serialize()
    assert path == "tidemill_airflow.scheduler.lag.LagTrigger"
    return type(found.value.trigger)(**deserialize(serialize(kwargs)))


async def first_event(trigger: Any) -> Any:
    async with asyncio.timeout(30):
        return (await anext(aiter(trigger.run()))).payload


def test_deferred_sensor_ends_when_the_trigger_finds_the_lag(mill: Mill) -> None:
    mill.feed([an_event(1)])
    sensor = a_sensor(mill, max_records=0, max_age="90 s", deferrable=True, timeout=60)
    trigger = deferred(sensor)

    async def story() -> Any:
        waiting = asyncio.create_task(first_event(trigger))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await asyncio.to_thread(mill.catch_up, drain=False)
        return await waiting

    event = asyncio.run(story())
    assert sensor.execute_complete({}, event) == {"pipeline": "sums", "batch_id": 1, "records": 0}


def test_sensor_whose_bounds_hold_does_not_defer(mill: Mill) -> None:
    assert a_sensor(mill, max_records=0, deferrable=True).execute({})["records"] == 0


def test_trigger_does_not_block_the_loop_while_the_log_is_slow(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    mill.feed([an_event(1)])
    trigger, answered = deferred(a_sensor(mill, max_records=0, deferrable=True)), threading.Event()
    monkeypatch.setattr(LagReader, "read", lambda _: answered.wait(30) and None)

    async def story() -> None:
        waiting = asyncio.create_task(first_event(trigger))
        await asyncio.sleep(0.1)
        answered.set()
        waiting.cancel()

    asyncio.run(story())
    assert answered.is_set()


def test_error_in_the_triggerer_fails_the_task_and_is_retried_if_it_may_pass(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    mill.feed([an_event(1)])
    sensor = a_sensor(mill, max_records=0, deferrable=True)
    trigger = deferred(sensor)
    mill.log.delete_topic("events")
    with pytest.raises(AirflowFailException, match="events"):
        sensor.execute_complete({}, asyncio.run(first_event(trigger)))
    _cut(monkeypatch)
    with pytest.raises(AirflowException, match="no broker answers") as found:
        sensor.execute_complete({}, asyncio.run(first_event(trigger)))
    assert not isinstance(found.value, AirflowFailException)


def test_sensor_is_part_of_the_package_and_nothing_else_is_imported_with_it() -> None:
    import tidemill_airflow

    assert tidemill_airflow.LagSensor.__name__ == "LagSensor"
    with pytest.raises(AttributeError, match="has no attribute 'LagSensors'"):
        getattr(tidemill_airflow, "LagSensors")  # noqa: B009  the name is the test
