"""Every block of code on the pages is executed, or read as what it is, by a test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import tidemill
from support.projects import ROOT
from support.readme import code
from tidemill.contracts.lint import lint
from tidemill.contracts.load import load_contract
from tidemill.core.bind.binding import bind
from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.sinks import Sink, WindowedSink
from tidemill.core.contract.contract import Contract, Format
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.declare import operators as op
from tidemill.core.declare.pipeline import Pipeline
from tidemill.core.time.windows import Global
from tidemill.engine.read.decode import decoder_for
from tidemill.project.project import Project
from tidemill.project.settings import FILE, Settings, read_settings

DOCS = ROOT / "docs"
AIRFLOW = "guides/airflow"

BLOCKS = {
    **{("concepts/time", "python", number): "here" for number in range(9)},
    ("guides/kafka", "toml", 0): "here",
    ("guides/kafka", "python", 0): "here",
    ("guides/kafka", "python", 1): "here",
    ("guides/kafka", "sh", 0): "test_readme_servers",
    ("guides/s3", "toml", 0): "here",
    ("guides/s3", "sh", 0): "test_readme_servers",
    ("guides/s3", "toml", 1): "here",
    ("guides/clusters", "sh", 0): "test_readme_servers",
    **{("guides/ci", "yaml", number): "test_contract_ci" for number in range(4)},
    ("guides/ci", "sh", 0): "test_contract_ci",
    **{("guides/going-back", "sh", number): "test_site" for number in range(10)},
    ("guides/contracts", "yaml", 0): "here",
    ("guides/contracts", "yaml", 1): "here",
    ("guides/contracts", "yaml", 2): "here",
    ("guides/contract-tools", "sh", 0): "here",
    ("guides/contract-tools", "sh", 1): "here",
    ("guides/python", "python", 0): "test_site",
    ("guides/python", "python", 1): "test_site",
    ("guides/python", "python", 2): "test_commands_from_python",
    **{("guides/testing", "python", number): "test_template" for number in range(2)},
    **{("tutorial", "sh", number): "test_readme" for number in range(2)},
    **{("tutorial", "sh", number): "test_site" for number in range(2, 7)},
    **{("tutorial", language, 0): "test_readme" for language in ("toml", "yaml", "python")},
    ("tutorial", "yaml", 1): "test_readme",
    (AIRFLOW, "python", 0): "here",
    (AIRFLOW, "python", 1): "here",
    (AIRFLOW, "python", 2): "here",
    (AIRFLOW, "python", 3): "here",
    (AIRFLOW, "sh", 0): "here",
    ("guides/airflow-deployment", "sh", 0): "test_constraints",
    ("guides/airflow-deployment", "python", 0): "here",
    ("guides/airflow-events", "python", 0): "here",
    ("guides/airflow-events", "python", 1): "here",
    **{
        (f"gallery/{name}", kind, 0): "test_gallery_pages"
        for name in ("logins", "social-volume", "earthquakes")
        for kind in ("sh", "python")
    },
    ("gallery/earthquakes", "sql", 0): "test_earthquakes",
    ("house", "", 0): "a drawing",
}
"""Page, language and number of each block, and the test that executes it; README's own are in `test_readme`."""


def test_no_block_is_left_out() -> None:
    pages = [path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")]
    pages = [page for page in pages if not page.startswith(("adr/", "reference/"))]
    found = {
        (page, language, number)
        for page in pages
        for language in ("sh", "python", "toml", "yaml", "sql", "")
        for number in range(len(code(page, language)))
    }
    assert found == BLOCKS.keys()


def settings_of(shop: Path, text: str) -> Settings:
    """The settings that a block says."""
    (shop / FILE).write_text(text, encoding="utf-8")
    return read_settings(shop)


def test_settings_of_kafka_are_read(shop: Path) -> None:
    found = settings_of(shop, code("guides/kafka", "toml")[0])
    assert found.kafka is not None
    assert found.kafka["kafka"] == "broker-1:9092,broker-2:9092"
    assert (found.kafka["security"], found.kafka["mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")


def test_settings_of_s3_and_of_landing_zones_are_read(shop: Path) -> None:
    first, second = code("guides/s3", "toml")
    found = settings_of(shop, first)
    assert (found.lake, found.log) == ("s3://warehouse/tidemill", "s3://events/log")
    assert found.s3["role"] == "arn:aws:iam::1234:role/lake"
    assert settings_of(shop, second).layout == "kafka-connect"


def test_reading_several_topics_and_publishing_to_one_are_declared_so(shop: Path) -> None:
    file = shop / "pipelines" / "sales.py"
    text, (both, to_topic) = file.read_text(), code("guides/kafka", "python")
    for line, expected in zip(both.splitlines(), (("shop.de", "shop.fr"), ()), strict=True):
        declared = re.sub(r"pipeline\.read\(.*\)", line[:-1] + ', event_time="ts", delay="10 seconds")', text)
        file.write_text(declared)
        spec = Project.load(shop).pipeline("sales").spec
        [read] = [o for o in spec.graph.operators.values() if isinstance(o, op.Read)]
        assert read.names == expected
        assert (read.pattern is None) == bool(expected)
    file.write_text(re.sub(r"\.publish\(.*\)", to_topic.strip(), text))
    assert Project.load(shop).pipeline("sales").sinks[0].topic == "sales-by-minute"


WINDOW = ("window_start timestamp", "window_end timestamp")


def contract_of(name: str, *columns: str) -> Contract:
    """A contract whose columns are given as `name type`; one of records, if there is `ts` without an order."""
    kinds = {"timestamp": Scalar.TIMESTAMP, "string": Scalar.STRING, "boolean": Scalar.BOOLEAN}
    kinds |= {"bigint": Scalar.LONG, "double": Scalar.DOUBLE}
    fields = (Field(name=column, type=kinds[kind]) for column, kind in map(str.split, columns))
    made = Contract(name=name, version="1", fields=tuple(fields))
    return replace(made, format=Format.JSON) if "ts" in made.columns and not name.endswith("_in_order") else made


def sink_of(block: int, **columns: tuple[str, ...]) -> Sink:
    """The sink that a block of the page about time declares. The first contract is that of its stream."""
    contracts = {name: contract_of(name, *each) for name, each in columns.items()}
    read = next(iter(columns))
    with Pipeline("declared", every="1 minute") as pipeline:
        stream = pipeline.read(read, contract=read, event_time="ts")
        exec(code("concepts/time", "python")[block], {read: stream, **vars(tidemill)})
    [sink] = bind(pipeline.spec, contracts).sinks
    return sink


def test_a_watermark_of_another_pipeline_is_declared_as_the_page_says() -> None:
    contracts = {name: contract_of(name, *each) for name, each in CHAINED.items()}
    with Pipeline("declared", every="1 minute") as pipeline:
        exec(code("concepts/time", "python")[0], {"pipeline": pipeline, **vars(tidemill)})
    flow = bind(pipeline.spec, contracts)
    assert [source.watermark_of for source in flow.inputs] == ["sales_by_minute"]


CHAINED = {
    "sums_by_minute_sent": ("ts timestamp", "shop string", "cents bigint"),
    "by_hour": (*WINDOW, "shop string", "cents bigint"),
}


def test_two_delays_are_declared_as_the_page_says() -> None:
    columns = {"orders": ("ts timestamp", "id string"), "orders_by_minute": (*WINDOW, "orders bigint")}
    contracts = {name: contract_of(name, *each) for name, each in columns.items()}
    with Pipeline("declared", every="1 minute") as pipeline:
        exec(code("concepts/time", "python")[1], {"pipeline": pipeline, **vars(tidemill)})
    assert bind(pipeline.spec, contracts).lags == {"orders_final": (9 * 60 + 50) * 1_000_000}


def test_rows_in_order_are_declared_as_the_page_says() -> None:
    orders = ("ts timestamp", "id string", "shop string", "cents bigint")
    sink = sink_of(2, orders=orders, orders_in_order=orders)
    assert isinstance(sink, WindowedSink)
    assert (sink.row_key, sink.panes.longest, sink.trigger.fires_on_close) == (("ts", "id"), 1, True)


def test_a_buffer_is_declared_as_the_page_says() -> None:
    readings = ("ts timestamp", "sensor string", "celsius double")
    sink = sink_of(3, readings=readings, smoothed=("sensor string", "mean double"))
    assert isinstance(sink, FiringSink)
    assert (sink.keys, sink.window) == (("sensor",), tidemill.SlidingBuffer(tidemill.CountPolicy(3)))


def test_a_buffer_in_order_of_event_time_is_declared_as_the_page_says() -> None:
    readings = ("ts timestamp", "sensor string", "celsius double")
    sink = sink_of(4, readings=readings, smoothed=("sensor string", "mean double"))
    assert isinstance(sink, FiringSink)
    assert (sink.keys, sink.window) == (
        ("sensor",),
        tidemill.SlidingBuffer(tidemill.CountPolicy(3), order="event_time"),
    )


def test_windows_that_records_define_are_declared_as_the_page_says() -> None:
    logins = ("ts timestamp", "source string", "ok boolean")
    sink = sink_of(5, logins=logins, bursts=(*WINDOW, "source string", "failures bigint"))
    assert isinstance(sink, FiringSink)
    assert (sink.keys, sink.window) == (("source",), tidemill.RecordWindows("1 minute"))
    assert sink.bounds == ("window_start", "window_end")


def test_a_trigger_is_declared_as_the_page_says() -> None:
    quakes = ("ts timestamp", "region string", "magnitude double")
    told = ("timing string", "nth bigint", "operation string")
    activity = (*WINDOW, "region string", "events bigint", "strongest double", *told)
    sink = sink_of(6, quakes=quakes, activity=activity)
    assert isinstance(sink, FiringSink)
    assert list(sink.told.types) == ["timing", "nth", "operation"]


def test_a_filter_and_columns_after_an_aggregate_are_declared_as_the_page_says() -> None:
    logins = ("ts timestamp", "source string", "success boolean")
    bursts = (*WINDOW, "source string", "attempts bigint", "failures bigint", "share double")
    sink = sink_of(7, logins=logins, bursts=bursts)
    assert isinstance(sink, WindowedSink)
    assert (sink.table, sink.chooses, sink.row_key) == ("bursts", True, ("window_start", "source"))


def test_a_change_feed_is_read_as_the_page_says() -> None:
    activity = (*WINDOW, "ts timestamp", "region string", "events bigint", "operation string")
    columns = {"activity_changes": activity, "of_all_regions": ("hour timestamp", "events bigint")}
    contracts = {name: contract_of(name, *each) for name, each in columns.items()}
    with Pipeline("declared", every="1 minute") as pipeline:
        exec(code("concepts/time", "python")[8], {"pipeline": pipeline, **vars(tidemill)})
    [sink] = bind(pipeline.spec, contracts).sinks
    assert isinstance(sink, WindowedSink)
    assert (sink.keys, isinstance(sink.window, Global)) == (("hour",), True)


def test_complete_contracts_have_no_finding_and_mean_what_the_page_says(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.odcs.yaml" for name in ("payments", "payments_by_hour")]
    *whole, promised = code("guides/contracts", "yaml")
    whole[1] += promised
    for path, text in zip(paths, whole, strict=True):
        path.write_text(text, encoding="utf-8")
        assert lint(path) == []
    records, table = map(load_contract, paths)
    assert [(level.name, level.text, level.most) for level in table.levels] == [
        ("freshness", "15 min", 900_000_000),
        ("latency", "2 h", 7_200_000_000),
    ]
    assert {rule.name: rule.severity for rule in records.row_rules} == {
        **dict.fromkeys(("shop.pattern", "cents.minimum", "currency.invalidValues", "paid"), "error"),
        "large": "warning",
    }
    kinds = {type(rule.check).__name__ for rule in table.table_rules}
    assert kinds >= {"RowCountBetween", "Expectation", "Compare", "Unique", "NotNull", "Between"}
    values = pa.array([b"1767268800000;north;-;CHF;void", b"noon;north;x;CHF;paid"], pa.binary())
    decoded = decoder_for(records).decode(values)
    [noon, _] = decoded.columns.to_pylist()
    assert (noon["cents"], noon["ts"].isoformat()) == (None, "2026-01-01T12:00:00+00:00")
    [nothing, fault] = decoded.errors.to_pylist()
    assert nothing is None
    assert "`ts`" in fault
    assert "`cents`" not in fault


def test_commands_of_tools_for_contracts_do_what_the_page_says(tmp_path: Path) -> None:
    for block in code("guides/contract-tools", "sh"):
        done = subprocess.run(["bash", "-ec", block], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    first, again = (load_contract(tmp_path / f"{name}.odcs.yaml") for name in ("payments", "again"))
    assert {f.name for f in first.fields if f.required} == {"ts", "shop", "cents"}
    assert again.fields == first.fields
    assert "`cents` bigint NOT NULL" in done.stdout
    assert "data_type: bigint" in done.stdout


def test_a_time_without_a_zone_is_utc_as_the_page_says(tmp_path: Path) -> None:
    text = code("guides/contracts", "yaml")[0]
    path = tmp_path / "payments.odcs.yaml"
    path.write_text(text.replace("epoch_ms", "iso"), encoding="utf-8")
    texts = ("2026-01-01T12:00:00", "2026-01-01 12:00", "2026-01-01T13:00:00+01:00", "2026-01-01T12:00:00Z")
    values = pa.array([f"{each};north;5;EUR;paid".encode() for each in texts], pa.binary())
    decoded = decoder_for(load_contract(path)).decode(values)
    assert {row["ts"].isoformat() for row in decoded.columns.to_pylist()} == {"2026-01-01T12:00:00+00:00"}


def test_programs_of_airflow_make_dags_assets_and_a_bridge(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(shop.parent / "airflow"))
    ours, chosen, theirs, bridge = [block.replace("/srv/shop", str(shop)) for block in code(AIRFLOW, "python")]
    found: dict[str, Any] = {}
    exec(ours, found)
    assert any(getattr(each, "dag_id", None) == "sales" for each in found.values())
    exec(chosen, found)
    live, backfill = found["sales"], found["sales.backfill"]
    assert {task.queue for task in backfill.tasks} == {"large"}
    paused = [dag.is_paused_upon_creation for dag in (live, backfill, found["tidemill.maintenance"])]
    assert paused == [True, False, False]
    made: dict[str, Any] = {}
    exec(bridge.replace("KinesisBridgeOperator(", "made = KinesisBridgeOperator("), made)
    assert made["made"].topic == "orders"
    exec(theirs.replace('DAG("', 'made = DAG("'), made)
    assert made["made"].dag_id == "export"


def test_records_start_runs_and_a_dag_waits_for_lag(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(shop.parent / "airflow"))
    starts, waits = [block.replace("/srv/shop", str(shop)) for block in code("guides/airflow-events", "python")]
    found: dict[str, Any] = {}
    exec(starts, found)
    [asset] = found["sales"].timetable.asset_condition.objects
    assert (asset.name, asset.watchers[0].trigger.look_every) == ("sales.records", 5.0)
    exec(waits.replace('DAG("', 'made := DAG("').replace("with made", "with (made").replace('"):', '")):'), found)
    [sensor] = found["made"].tasks
    assert (sensor.deferrable, sensor.poke_interval, sensor.max_age) == (True, 30, "10 minutes")


def test_backfills_get_pods_of_their_own_as_the_page_says(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(shop.parent / "airflow"))
    # The package is not installed here: each class becomes a function that keeps its arguments.
    models = type("models", (), {"__getattr__": lambda _, name: lambda **given: {"of": name, **given}})()
    monkeypatch.setitem(sys.modules, "kubernetes", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "kubernetes.client", SimpleNamespace(models=models))
    found: dict[str, Any] = {}
    exec(code("guides/airflow-deployment", "python")[0].replace("/opt/airflow/project", str(shop)), found)
    for name in ("sales.backfill", "sales.replay"):
        [task] = found[name].tasks
        assert task.executor == "KubernetesExecutor"
        assert task.executor_config["pod_override"]["spec"]["containers"][0]["name"] == "base"
    assert found["sales"].tasks[0].executor is None


def test_pools_are_told_as_the_page_says(shop: Path) -> None:
    _, to_json = code(AIRFLOW, "sh")[0].replace("/srv/shop", str(shop)).splitlines()
    monkey = {
        **os.environ,
        "AIRFLOW_HOME": str(shop.parent / "airflow"),
        "PYTHONPATH": f"{ROOT}/spark_jobs:{ROOT}/plugins",
    }
    command = [sys.executable, *to_json.partition("#")[0].split()[1:]]
    done = subprocess.run(command, env=monkey, capture_output=True, text=True, timeout=120, check=True)
    assert "tidemill.sales" in json.loads(done.stdout)
