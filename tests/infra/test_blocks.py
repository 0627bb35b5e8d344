"""Every block of code on the pages is executed, or read as what it is, by a test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.commands import type_command
from support.projects import ROOT
from support.readme import code
from tidemill.core.declare import operators as op
from tidemill.project.project import Project
from tidemill.project.settings import FILE, Settings, read_settings

DOCS = ROOT / "docs"
AIRFLOW = "guides/airflow"

BLOCKS = {
    ("guides/kafka", "toml", 0): "here",
    ("guides/kafka", "python", 0): "here",
    ("guides/kafka", "python", 1): "here",
    ("guides/kafka", "sh", 0): "test_readme_servers",
    ("guides/s3", "toml", 0): "here",
    ("guides/s3", "sh", 0): "test_readme_servers",
    ("guides/s3", "toml", 1): "here",
    ("guides/clusters", "sh", 0): "test_readme_servers",
    ("guides/contracts", "yaml", 0): "here",
    ("guides/python", "python", 0): "test_site",
    ("guides/python", "python", 1): "test_site",
    ("guides/testing", "python", 0): "test_template",
    **{("tutorial", "sh", number): "test_site" for number in range(5)},
    **{("tutorial", language, 0): "test_readme" for language in ("", "toml", "yaml", "python")},
    **{("tutorial", language, 1): "test_readme" for language in ("", "yaml")},
    (AIRFLOW, "python", 0): "here",
    (AIRFLOW, "python", 1): "here",
    (AIRFLOW, "python", 2): "here",
    (AIRFLOW, "sh", 0): "here",
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


def test_a_rule_of_our_own_is_one_that_contracts_may_have(shop: Path) -> None:
    [rule] = code("guides/contracts", "yaml")
    file = shop / "data_contracts" / "orders.odcs.yaml"
    text = file.read_text().replace(
        "    properties:\n", "    " + "    ".join(rule.splitlines(keepends=True)) + "    properties:\n"
    )
    file.write_text(text + "      - {name: status, logicalType: string, description: whether it holds}\n")
    said = type_command(shop, "contract", "lint")
    assert said.code == 0, said.out + said.err
    [known] = [r for r in Project.load(shop).pipeline("sales").inputs[0].contract.row_rules if r.name == "paid"]
    assert known.predicate == "cents > 0 OR status = 'void'"


def test_programs_of_airflow_make_dags_assets_and_a_bridge(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(shop.parent / "airflow"))
    ours, theirs, bridge = [block.replace("/srv/shop", str(shop)) for block in code(AIRFLOW, "python")]
    found: dict[str, object] = {}
    exec(ours, found)
    assert any(getattr(each, "dag_id", None) == "sales" for each in found.values())
    made: dict[str, Any] = {}
    exec(bridge.replace("KinesisBridgeOperator(", "made = KinesisBridgeOperator("), made)
    assert made["made"].topic == "orders"
    exec(theirs.replace('DAG("', 'made = DAG("'), made)
    assert made["made"].dag_id == "export"


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
