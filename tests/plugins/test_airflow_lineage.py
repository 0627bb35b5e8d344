"""What OpenLineage is told: where columns come from, what topics and tables are called, which batches have an event."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.projects import NO_SPARK, Mill, sums
from tidemill.core.bind.flow import Flow
from tidemill.core.plan.position import Position
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.events import Committed
from tidemill.inspect.column_lineage import Origin, Way, input_of, origins
from tidemill.project.project import Project
from tidemill_airflow.tasks.facts import Known, facts
from tidemill_airflow.tasks.lineage import Place, Told, lineage, place_of, place_of_topic

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_columns_of_a_window_come_from_keys_event_time_and_aggregated_values(flow: Flow) -> None:
    rows, windows = flow.sinks
    found = origins(windows, flow.inputs[0])
    time = {Origin("ts", Way.TRANSFORMATION)}
    assert found.columns == {
        "window_start": time,
        "window_end": time,
        "path": {Origin("path", Way.IDENTITY)},
        "views": set(),
        "bytes": {Origin("bytes", Way.AGGREGATION)},
    }
    assert found.rows == {Origin("agent", Way.FILTER), Origin("path", Way.GROUP), Origin("ts", Way.WINDOW)}
    assert origins(rows, flow.inputs[0]).columns["ts"] == {Origin("ts", Way.IDENTITY)}


@pytest.mark.parametrize(
    ("computed", "way"),
    [
        ("coalesce(user, 'unknown')", Way.TRANSFORMATION),
        ("USER", Way.IDENTITY),
        ("`user`", Way.IDENTITY),
        ("'all'", None),
    ],
)
def test_computed_column_leads_back_to_what_it_was_computed_from(mill: Mill, computed: str, way: Way | None) -> None:
    file = mill.project.folder / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace("coalesce(user, 'unknown')", computed))
    flow = Project.load(mill.project.folder).declared("sums")
    found = origins(flow.sinks[0], flow.inputs[0])
    assert found.columns["user"] == ({Origin("user", way)} if way else set())
    assert found.columns["amount"] == {Origin("amount", Way.AGGREGATION)}
    assert Origin("user", Way.FILTER) in found.rows


@pytest.mark.parametrize(
    ("uri", "namespace", "name"),
    [
        ("/srv/lake/published/sums", "file", "/srv/lake/published/sums"),
        ("file:///srv/my%20lake/sums", "file", "/srv/my lake/sums"),
        ("s3://shop/lake/published/sums", "s3://shop", "lake/published/sums"),
        ("s3a://shop/lake/", "s3://shop", "lake"),
        ("s3://key:secret@shop/lake", "s3://shop", "lake"),
        ("s3://shop", "s3://shop", "/"),
    ],
)
def test_place_is_named_as_the_standard_names_it_and_never_with_a_secret(uri: str, namespace: str, name: str) -> None:
    assert place_of(uri) == Place(namespace=namespace, name=name)


@pytest.mark.parametrize(
    ("brokers", "namespace"),
    [
        ("broker-1:9093,broker-2:9093", "kafka://broker-1:9093"),
        (" broker-1 ", "kafka://broker-1:9092"),
        ("SASL_SSL://user:secret@broker-1:9093", "kafka://broker-1:9093"),
    ],
)
def test_topic_of_kafka_is_named_by_its_first_broker(brokers: str, namespace: str) -> None:
    settings: Any = SimpleNamespace(kafka={"kafka": brokers})
    assert place_of_topic(settings, "orders") == Place(namespace=namespace, name="orders")


def test_topic_of_a_pattern_is_read_by_the_input_with_the_pattern(flow: Flow) -> None:
    assert input_of(flow, "web.access") is flow.inputs[0]
    assert input_of(flow, "web.error") is None


def a_commit(batch_id: int) -> Committed:
    return Committed(
        batch_id=batch_id,
        attempt=1,
        plan_hash="plan",
        position=Position(batch_id=batch_id),
        accounts={"events": Account(read=10, aggregated=9, rejected=1)},
        tables={"sums": 2 + batch_id, "quarantine": 1},
        published={"sums": 4},
        started=NOW,
        at=NOW + timedelta(seconds=batch_id),
    )


@pytest.fixture
def mill(tmp_path: Path) -> Mill:
    return sums(tmp_path, NO_SPARK)


def told(project: Project, *announced: int, all_of: tuple[int, ...] = (1, 2, 3)) -> Told:
    commits = tuple(a_commit(number) for number in all_of)
    batches = tuple(facts(commit, Known()) for commit in commits if commit.batch_id in announced)
    return Told(project=project, pipeline="sums", commits=commits, batches=batches)


def sent(monkeypatch: pytest.MonkeyPatch, what: Told) -> tuple[Any, list[Any]]:
    """What the provider gets for the task's own event, and the events that are sent beside it."""
    from tidemill_airflow.tasks import openlineage

    events: list[Any] = []
    monkeypatch.setattr(openlineage, "OpenLineageAdapter", lambda: SimpleNamespace(emit=events.append))
    for name, value in (
        ("lineage_job_name", "sums.batch"),
        ("lineage_run_id", "01a21079-c9ac-731e-b4cc-79ffbbee398e"),
        ("lineage_root_run_id", "01a21079-c9ac-7129-a42d-056a7cc05c7d"),
        ("lineage_root_job_namespace", "default"),
        ("lineage_root_job_name", "sums"),
    ):
        monkeypatch.setattr(openlineage.macros, name, lambda _, value=value: value)
    return openlineage.lineage_of(lineage(what), SimpleNamespace()), events


def test_each_batch_of_a_task_has_one_event_and_the_last_one_is_the_tasks_own(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, beside = sent(monkeypatch, told(mill.project, 1, 2, 3))
    assert own.run_facets["tidemill_batch"].batch["batch_id"] == 3
    assert [event.run.facets["tidemill_batch"].batch["batch_id"] for event in beside] == [1, 2]
    assert len({event.run.runId for event in beside}) == 2
    again = sent(monkeypatch, told(mill.project, 1, 2, 3))[1]
    assert [event.run.runId for event in again] == [event.run.runId for event in beside]
    assert {event.run.facets["parent"].run.runId for event in beside} == {"01a21079-c9ac-731e-b4cc-79ffbbee398e"}


def test_batch_that_an_earlier_try_announced_has_no_second_event(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    own, beside = sent(monkeypatch, told(mill.project, 3))
    assert (own.run_facets["tidemill_batch"].batch["batch_id"], beside) == (3, [])


def test_only_published_tables_are_outputs_and_say_version_rows_and_storage(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, _ = sent(monkeypatch, told(mill.project, 1))
    [table] = own.outputs
    assert (table.namespace, table.name) == ("file", mill.project.published_uri("sums"))
    assert table.facets["version"].datasetVersion == "3"
    assert table.outputFacets["outputStatistics"].rowCount == 4
    assert [f.name for f in table.facets["schema"].fields] == ["window_start", "window_end", "user", "n", "amount"]
    [topic] = own.inputs
    assert (topic.name, topic.inputFacets["inputStatistics"].rowCount) == (f"{mill.project.settings.log}/events", 10)


def test_rows_that_are_sent_are_an_output_too(flow: Flow, mill: Mill) -> None:
    sink = replace(flow.sinks[1], topic="views")
    project: Any = SimpleNamespace(
        declared=lambda _: replace(flow, sinks=(sink,)),
        published_uri=lambda table: f"s3://shop/lake/published/{table}",
        settings=SimpleNamespace(kafka={"kafka": "broker:9092"}),
    )
    commit = replace(a_commit(1), tables={sink.table: 7}, accounts={"web.access": Account(read=1)})
    what = Told(project=project, pipeline="sums", commits=(commit,), batches=(facts(commit, Known()),))
    [batch] = lineage(what)
    assert [(t.place.namespace, t.place.name, t.version) for t in batch.tables] == [
        ("s3://shop", "lake/published/page_views_by_minute", 7),
        ("kafka://broker:9092", "views", None),
    ]


def test_topic_of_which_nothing_was_read_is_no_input(mill: Mill) -> None:
    commit = replace(a_commit(1), accounts={"events": Account(), "more": Account()})
    offsets = {"events": {"0": [[5, 5]], "1": [[0, 2]]}, "more": {"0": [[7, 7]]}}
    batch = {**facts(commit, Known()), "offsets": offsets}
    [found] = lineage(Told(project=mill.project, pipeline="sums", commits=(commit,), batches=(batch,)))
    assert [topic.place.name for topic in found.topics] == [f"{mill.project.settings.log}/events"]


def test_declaration_that_is_wrong_by_now_tells_nothing(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    (mill.project.folder / "pipelines" / "pipeline.py").write_text("nonsense(")
    assert sent(monkeypatch, told(Project.load(mill.project.folder), 1)) == (None, [])


def test_task_without_a_commit_tells_nothing_and_its_assets_are_no_datasets() -> None:
    from airflow.providers.openlineage.extractors.manager import ExtractorManager
    from airflow.utils.state import TaskInstanceState

    from tidemill_airflow.assets import batch_asset, table_asset
    from tidemill_airflow.tasks.micro_batch import MicroBatchOperator

    task = MicroBatchOperator(task_id="batch", pipeline="sums", outlets=[batch_asset("sums"), table_asset("sums")])
    assert task.get_openlineage_facets_on_complete(None) is None
    ti, run = SimpleNamespace(), SimpleNamespace(run_id="manual__1")
    for state in (TaskInstanceState.RUNNING, TaskInstanceState.SKIPPED, TaskInstanceState.FAILED):
        found = ExtractorManager().extract_metadata(run, task, state, ti)
        assert (found.inputs, found.outputs) == ([], [])


def test_dags_are_parsed_and_batches_execute_without_the_provider() -> None:
    program = (
        "import sys; sys.modules['openlineage'] = None\n"
        "from tidemill_airflow.tasks.micro_batch import MicroBatchOperator as Task\n"
        "print(Task(task_id='batch', pipeline='sums').get_openlineage_facets_on_complete(None))"
    )
    environment = {"PYTHONPATH": ":".join(sys.path), "_AIRFLOW__AS_LIBRARY": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "None"
