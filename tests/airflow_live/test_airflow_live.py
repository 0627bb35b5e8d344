"""A scheduler that runs a pipeline every few seconds, while people and accidents do what they do."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from airflow_live.airflow import Airflow
from airflow_live.outcome import Story
from airflow_live.story import Teller
from chaos.world import PIPELINE, make_world
from support.connect import ConnectServer
from tidemill.core.protocol.failpoints import VARIABLE

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.long]

DAGS = """
from datetime import timedelta

from airflow.sdk import DAG

from tidemill_airflow import LagSensor
from tidemill_airflow.factory import dags_for

globals().update(dags_for("PROJECT", default_args={"retry_delay": timedelta(seconds=1)}, ask_people=True))
with DAG("waits", schedule=None):
    lag = {"pipeline": "mixed", "project": "PROJECT", "min_records": 1}
    LagSensor(task_id="wait", deferrable=True, poke_interval=0.2, timeout=200, **lag)
"""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """All of it, once; the tests look at what came of it."""
    folder = tmp_path_factory.mktemp("live")
    gate, dags, home = folder / "gate", folder / "dags", folder / "home"
    gate.touch()
    dags.mkdir()
    home.mkdir()
    with ConnectServer(folder) as server:
        # A session of a server takes seconds to begin: all tasks have the same.
        remotes = [f"{server.remote}/;session_id={uuid.uuid4()}", server.remote]
        world = make_world(folder / "world", remotes, trigger="on_update", every="3 seconds")
        file = dags / "tidemill_dags.py"
        file.write_text(DAGS.replace("PROJECT", str(world.seats[0])))
        environ = {VARIABLE: f"before:published:sums=pause:{gate}"}
        with Airflow(home, dags, environ) as airflow:
            yield Teller(airflow, world, gate, file).tell()


def test_scheduled_manual_and_other_runs_at_once_commit_every_offset_once(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    found = story.judgement
    with capsys.disabled():
        print(
            f"\nAirflow: {story.runs.total()} runs, {story.kills} kills, {found.batches} batches, "
            f"{found.lost.total()} lost, {found.doubled.total()} doubled"
        )
    assert found.reasons == []
    assert set(story.overlapped["codes"]) <= {0, 3}
    assert story.overlapped["manual"] in ("success", "skipped")
    assert story.overlapped["planned by"]["airflow"] > 0


def test_retry_completes_the_batch_of_a_task_that_was_killed(story: Story) -> None:
    assert story.task_killed == {"attempt": 2, "same run": True, "same process": False, "commits": 1}


def test_retry_takes_over_from_a_task_without_supervisor_which_wakes_up_later_and_changes_nothing(story: Story) -> None:
    wanted = {"attempt": 2, "same run": True, "same process": False, "commits": 1}
    assert story.supervisor_killed == {**wanted, "alive": True, "the same after it woke up": True}


def test_clear_of_a_run_that_succeeded_commits_nothing_again(story: Story) -> None:
    assert len(story.cleared["before"]) == 1
    assert story.cleared == {**story.cleared, "after": story.cleared["before"], "state": "success"}


def test_clear_of_a_run_that_succeeded_announces_nothing_again(story: Story) -> None:
    assert f"{PIPELINE}.batches" in story.cleared["announced"]
    assert story.cleared["announced again"] == []


def test_links_of_a_task_lead_to_the_pages_of_its_batch_and_its_tables(story: Story) -> None:
    batch, found = story.links.pop("batch"), dict(story.links)
    windows = f"tidemill/pipelines/{PIPELINE}/windows"
    assert found.pop("Batch") == f"tidemill/pipelines/{PIPELINE}/batches/{batch}"
    assert found == {
        "Spark": None,
        "History": f"tidemill/pipelines/{PIPELINE}",
        "Quarantine": f"tidemill/pipelines/{PIPELINE}/records/quarantine",
        **{name: f"{windows}/{name.removeprefix('Table ')}" for name in found if name.startswith("Table ")},
    }
    assert len(found) > 2


def test_every_run_that_ended_has_a_note_that_tells_skipped_runs_from_those_with_batches(story: Story) -> None:
    # Airflow marks a run whose task somebody marked, and the task says nothing any more.
    notes = [note for run, note in story.notes.items() if run != story.marked["marked run"]]
    assert all((note or "").startswith("Tidemill: ") for note in notes)
    assert any("skipped: nothing to do" in (note or "") for note in notes)
    assert any("(live): " in (note or "") for note in notes)


def test_clear_of_a_task_that_runs_lets_its_next_try_complete_the_batch(story: Story) -> None:
    assert story.cleared_running == {"attempt": 2, "same run": True, "same process": False, "commits": 1}


def test_backfill_ends_beside_scheduled_runs_though_its_task_was_killed(story: Story) -> None:
    found = story.backfilled
    assert (found["state"], found["killed"]) == ("success", True)
    assert found["backfill"] > 1
    assert found["live"] > 1


def test_mark_success_of_a_task_that_runs_commits_nothing_and_the_next_run_takes_the_offsets(story: Story) -> None:
    found = story.marked
    assert (found["moved"], found["state"], found["same run"], found["commits"]) == (False, "success", False, 1)


def test_people_are_asked_once_about_a_blocked_batch_and_runs_fail_until_they_answer(story: Story) -> None:
    found = story.decided
    assert (found["asked"], found["a later run"], found["decide"]) == (1, "failed", "success")
    assert (found["decision"], found["why"], found["commits"]) == ("accept", "a trial", 1)


def test_records_start_a_run_long_before_its_time_and_no_second_one(story: Story) -> None:
    found = story.started
    assert found["types"] == {"asset_triggered"}
    assert 2 <= found["batches"] <= found["runs"] <= 2 * found["batches"]


def test_deferred_sensor_sees_the_records_before_they_are_committed(story: Story) -> None:
    assert story.started["sensor"] == "success"
