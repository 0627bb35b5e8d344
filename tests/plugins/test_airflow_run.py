"""A project's DAGs executed by Airflow itself, with Spark, on a file log, until they have committed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.projects import SHORT_LIVED

ROOT = Path(__file__).parents[2]
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
PAGES = ("/", "/a?x=1", "/a?x=2", "/b")

pytestmark = [pytest.mark.airflow, pytest.mark.spark]


def line(at: datetime, path: str) -> str:
    return f'10.0.0.{at.second} - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET {path} HTTP/1.1" 200 512 "-" "test"'


def lines() -> list[str]:
    """Ten minutes of a request every other second, a broken line, and one request an hour later, which closes them."""
    requests = [line(START + timedelta(seconds=2 * i), PAGES[i % 4]) for i in range(300)]
    return [*requests[:100], "not an access log", *requests[100:], line(START + timedelta(hours=1), "/late")]


def expected() -> Counter[tuple[datetime, str]]:
    """Requests per minute and page of all windows that are closed at the end."""
    moments = (START + timedelta(seconds=2 * i) for i in range(300))
    return Counter((at.replace(second=0), PAGES[i % 4].partition("?")[0]) for i, at in enumerate(moments))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference pipeline, and one whose published table breaks its contract, on a log of 302 records.

    Spark aggregates batches of more than 100 records, and smaller ones need none.
    """
    from tidemill.log.file import FileLog
    from tidemill.log.records import NewRecord

    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "dags", folder / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "data_contracts", folder / "data_contracts")
    (folder / "pipelines").mkdir()
    (folder / "tidemill.toml").write_text(
        f'[spark]\ncores = 2\njars = "{ROOT / ".tidemill" / "jars"}"\n'
        "[limits]\nbatch_records = 1000\ndriver_records = 100\n[spark.conf]\n"
        + "".join(f'"{key}" = "{value}"\n' for key, value in SHORT_LIVED.items())
    )
    pipeline = (ROOT / "spark_jobs" / "pipelines" / "page_views.py").read_text()
    (folder / "pipelines" / "page_views.py").write_text(pipeline)
    strict = pipeline.replace('"page_views"', '"strict"').replace('"page_views_by_minute"', '"quiet_pages"')
    (folder / "pipelines" / "strict.py").write_text(strict)
    contract = (folder / "data_contracts" / "page_views_by_minute.odcs.yaml").read_text()
    capped = contract.replace("page_views_by_minute", "quiet_pages").replace("minimum: 1\n", "maximum: 5\n", 1)
    (folder / "data_contracts" / "quiet_pages.odcs.yaml").write_text(capped)
    log = FileLog(folder / "log")
    log.create_topic("web.access", 1)
    log.append("web.access", 0, [NewRecord(value=text.encode()) for text in lines()])
    return folder


RUNS = [
    ("page_views", {"max_batches": 2, "max_records": 120}),
    ("page_views", {"max_batches": 9}),
    ("page_views", {}),
    ("strict", {}),
    (
        "page_views.backfill",
        {"mode": "do it", "from_time": "2000-01-01T00:00:00Z", "batch_records": 100, "why": "a trial"},
    ),
    # A DAG that is tested twice keeps the parameters of the first time.
    ("page_views.backfill", {"mode": "do it", "from_time": None, "from_offsets": "web.access-0:9000"}),
    ("page_views.replay", {"mode": "do it", "batch": "1-9", "why": "a trial"}),
    ("page_views.replay", {"mode": "do it", "records": "late"}),
    ("tidemill.maintenance", {"keep": "1 day"}),
]


@pytest.fixture(scope="module")
def answer(project: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Airflow remembers of RUNS, executed one after the other in a process with a database of its own."""
    home = tmp_path_factory.mktemp("airflow")
    remembered = home / "answer.json"
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "_AIRFLOW", "TIDEMILL"))},
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(project / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
            {"type": "file", "log_file_path": str(home / "lineage"), "append": True}
        ),
        "PYTHONPATH": os.pathsep.join((str(ROOT / "spark_jobs"), str(ROOT / "plugins"))),
    }
    program = Path(__file__).with_name("airflow_session.py")
    done = subprocess.run(
        [sys.executable, str(program), str(project / "dags"), str(remembered), json.dumps(RUNS)],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    found = json.loads(remembered.read_text())
    # Those of maintenance have no batches.
    found["results"] = [result for result in found.get("results", []) if "batches" in result]
    lineage = [json.loads(line) for line in (home / "lineage").read_text().splitlines()]
    return {**found, "log": done.stdout + done.stderr, "lineage": lineage}


def test_dags_of_the_project_are_parsed_without_an_error(answer: dict[str, Any]) -> None:
    assert "import_errors" not in answer


def test_run_commits_batches_until_its_limit_then_the_next_run_catches_up(answer: dict[str, Any]) -> None:
    first, second = answer["results"][:2]
    assert [(b["batch_id"], b["read"]) for b in first["batches"]] == [(1, 120), (2, 120)]
    assert [(b["batch_id"], b["read"]) for b in second["batches"]] == [(3, 62)]


def test_result_has_offsets_lag_verdict_and_the_seconds_of_each_step(answer: dict[str, Any]) -> None:
    first, second = answer["results"][0]["batches"]
    assert [b["offsets"] for b in (first, second)] == [{"web.access": {"0": [ends]}} for ends in ([0, 120], [120, 240])]
    assert [b["lag"] for b in (first, second)] == [{"web.access": 182}, {"web.access": 62}]
    assert (first["kind"], first["verdict"]["state"], first["verdict"]["broken"]) == ("live", "passed", [])
    assert first["steps"].keys() >= {"claim", "spark", "aggregate", "stage", "audit", "publish"}
    assert first["records_per_second"] > 0


def test_log_of_a_task_says_what_a_batch_reads_how_long_its_steps_take_and_what_was_rejected(
    answer: dict[str, Any],
) -> None:
    said = answer["log"].partition("batch 1 committed after")[0]
    assert "batch 1 (live): 120 records of web.access 0:0-119; 182 more wait in the log" in said
    assert all(f"batch 1: {step} " in said for step in ("aggregate", "stage", "audit", "publish", "commit"))
    assert "batch 1: 1 rejected, now in quarantine: wrong_value(time) 1" in answer["log"]
    assert "great_expectations" not in said


def test_task_leaves_links_to_its_pages(answer: dict[str, Any]) -> None:
    links = {(key, json.loads(value) if value.startswith('"') else value) for key, value in answer["links"]}
    assert ("_link_tidemill_Batch", "tidemill/pipelines/page_views/batches/2") in links
    assert (
        "_link_tidemill_Table_page_views_by_minute",
        "tidemill/pipelines/page_views/windows/page_views_by_minute",
    ) in links
    # The batch that its audit blocks has a page, too.
    assert ("_link_tidemill_Batch", "tidemill/pipelines/strict/batches/1") in links


def test_run_with_nothing_to_do_is_skipped_and_its_dag_run_succeeds(answer: dict[str, Any]) -> None:
    assert answer["runs"][:3] == ["success", "success", "success"]
    assert [t["state"] for t in answer["tasks"] if t["dag"] == "page_views"] == ["success", "success", "skipped"]


def test_every_committed_batch_is_announced_once_as_a_partition(answer: dict[str, Any]) -> None:
    events = [e for e in answer["events"] if e["asset"] == "page_views.batches"][:3]
    assert sorted(e["partition"] for e in events) == ["1", "2", "3"]
    for event in events:
        facts = event["extra"]["batches"][event["partition"]]
        assert facts["batch_id"] == int(event["partition"])
        assert facts["watermark"] is not None


def test_published_table_is_announced_once_per_run_that_committed(answer: dict[str, Any]) -> None:
    events = [e for e in answer["events"] if e["asset"] == "page_views_by_minute"][:2]
    assert [(e["partition"], e["extra"]["batch_id"]) for e in events] == [(None, 2), (None, 3)]


def test_published_rows_are_those_of_the_log(project: Path, answer: dict[str, Any]) -> None:
    from deltalake import DeltaTable

    rows = DeltaTable(str(project / "lake" / "published" / "page_views_by_minute")).to_pyarrow_table().to_pylist()
    published = {(row["window_start"], row["page"]): row["requests"] for row in rows}
    assert len(rows) == len(published)
    assert published == expected()


def test_broken_line_is_counted_as_rejected_in_its_batch(answer: dict[str, Any]) -> None:
    assert [b["rejected"] for result in answer["results"][:2] for b in result["batches"]] == [1, 0, 0]


def test_blocked_audit_fails_at_once_and_publishes_nothing(project: Path, answer: dict[str, Any]) -> None:
    [task] = [t for t in answer["tasks"] if t["dag"] == "strict"]
    assert answer["runs"][3] == "failed"
    assert (task["state"], task["tries"]) == ("failed", 1)
    assert not [e for e in answer["events"] if e["asset"] in ("strict.batches", "quiet_pages")]
    assert not (project / "lake" / "published" / "quiet_pages").exists()


def test_blocked_audit_names_rule_and_rows_in_the_tasks_log(answer: dict[str, Any]) -> None:
    assert "AirflowFailException: strict: batch 1 is blocked by its audit" in answer["log"]
    assert "error quiet_pages: requests" in answer["log"]
    assert "'page': '/a', 'requests':" in answer["log"]


def test_a_backfill_and_a_replay_are_triggered_with_their_forms(answer: dict[str, Any]) -> None:
    assert answer["runs"][4:] == ["success", "failed", "success", "success", "success"]
    backfilled, replayed = answer["results"][2:4]
    assert sum(b["read"] for b in backfilled["batches"]) == 302
    assert [(b["read"], b["rejected"]) for b in replayed["batches"]] == [(1, 1)]
    states = {(t["dag"], t["state"]) for t in answer["tasks"][4:]}
    assert ("page_views.replay", "skipped") in states
    assert ("tidemill.maintenance", "success") in states
    assert "offset 9000 was not read yet" in answer["log"]


def test_batches_that_go_back_are_announced_too(answer: dict[str, Any]) -> None:
    events = [e["partition"] for e in answer["events"] if e["asset"] == "page_views.batches"]
    ids = [str(b["batch_id"]) for result in answer["results"][2:4] for b in result["batches"]]
    assert sorted(events[3:]) == sorted(ids)


def test_tasks_that_go_back_wait_in_the_pool_of_their_pipeline(answer: dict[str, Any]) -> None:
    pools = {t["dag"]: t["pool"] for t in answer["tasks"] if not t["task"].endswith(".fold")}
    assert pools["page_views.backfill"] == pools["page_views.replay"] == pools["page_views"]
    assert pools["tidemill.maintenance"] != pools["page_views"]


def test_openlineage_is_told_of_every_committed_batch_once_and_of_no_other_run(answer: dict[str, Any]) -> None:
    told = [event for event in answer["lineage"] if event["inputs"] or event["outputs"]]
    batches = [event["run"]["facets"]["tidemill_batch"]["batch"] for event in told]
    committed = [batch for result in answer["results"] for batch in result["batches"]]
    assert [b["batch_id"] for b in batches] == [b["batch_id"] for b in committed]
    assert {event["eventType"] for event in told} == {"COMPLETE"}
    for event in told:
        _check_event(event)


def test_openlineage_is_told_tables_and_topics_with_their_columns_and_rows(answer: dict[str, Any]) -> None:
    first = next(event for event in answer["lineage"] if event["outputs"])
    [topic], [table] = first["inputs"], first["outputs"]
    assert topic["name"].endswith("/log/web.access")
    assert topic["inputFacets"]["inputStatistics"]["rowCount"] == 120
    assert table["name"].endswith("/lake/published/page_views_by_minute")
    assert table["outputFacets"]["outputStatistics"]["rowCount"] > 0
    columns = table["facets"]["columnLineage"]
    [path] = columns["fields"]["page"]["inputFields"]
    assert {field["name"] for field in table["facets"]["schema"]["fields"]} >= columns["fields"].keys()
    assert path["name"] == topic["name"]
    assert path["transformations"]


def _check_event(event: dict[str, Any]) -> None:
    """What the standard requires of a run event."""
    assert event["schemaURL"].endswith("#/$defs/RunEvent")
    uuid.UUID(event["run"]["runId"])
    datetime.fromisoformat(event["eventTime"])
    sets = [*event["inputs"], *event["outputs"]]
    known = {(each["namespace"], each["name"]) for each in sets}
    assert all(namespace and name for namespace, name in known)
    parts = [event["run"]["facets"], *(each.get(kind, {}) for each in sets for kind in _FACETS)]
    assert all(facet.keys() >= {"_producer", "_schemaURL"} for part in parts for facet in part.values())
    read = {(each["namespace"], each["name"]) for each in event["inputs"]}
    for table in event["outputs"]:
        columns = table["facets"]["columnLineage"]
        used = [f for fields in columns["fields"].values() for f in fields["inputFields"]] + columns["dataset"]
        assert {(f["namespace"], f["name"]) for f in used} <= read


_FACETS = ("facets", "inputFacets", "outputFacets")
