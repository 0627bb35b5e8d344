"""The same records give the same rows with both writers and in both places of Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.connect import ConnectServer
from support.projects import Mill, an_event, sums
from support.writers import WRITERS
from tidemill.core.protocol.events import Audited, Planned
from tidemill.project.project import Project
from tidemill.project.settings import FILE

pytestmark = pytest.mark.spark

RUNNER = """
import sys
from tidemill.project.project import Project
from tidemill.run.loop import Order, run_batches
for _ in run_batches(Project.load(sys.argv[1]), "sums", Order(limit=60, drain=True, most=None)):
    pass
"""


def a_mill(folder: Path, spark: Any, **settings: Any) -> Mill:
    """Records of every fate, in an order that makes some late."""
    mill = sums(folder, spark, window='Sliding("10 seconds", "4 seconds")', lateness="8 s", **settings)
    values: list[bytes | None] = [an_event((i * 7) % 50 + i, f"u{i % 4}", i) for i in range(100)]
    mill.feed([*values, b"{cut", None, an_event(500, "nobody"), an_event(3)])
    return mill


def recorded_hashes(mill: Mill) -> list[tuple[int, str]]:
    """The logical hashes of all plans and audits in the ledger, each with its batch, in their order."""
    found = []
    for entry in mill.project.ledger("sums").entries():
        match entry.event:
            case Planned(plan=plan):
                found.append((plan.batch_id, plan.logical_hash))
            case Audited(batch_id=batch_id, logical_hash=logical_hash):
                found.append((batch_id, logical_hash))
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> tuple[Any, list[tuple[int, str]]]:
    """All tables, and the hashes that the ledger recorded, of a local session with delta-rs."""
    mill = a_mill(tmp_path_factory.mktemp("local"), spark, writer="delta-rs", driver_records=0)
    mill.catch_up(limit=60)
    tables = mill.everything()
    assert all(tables.values())
    hashes = recorded_hashes(mill)
    assert [batch_id for batch_id, _ in hashes] == [1, 1, 2, 2]
    assert len({logical_hash for _, logical_hash in hashes}) == 1
    return tables, hashes


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"writer": "spark"}, id="spark", marks=pytest.mark.long),
        pytest.param({"driver_rows": 10}, id="by size"),
    ],
)
def test_both_writers_publish_the_same_rows(tmp_path: Path, spark: Any, expected: Any, settings: Any) -> None:
    mill = a_mill(tmp_path, spark, **settings)
    mill.catch_up(limit=60)
    assert (mill.everything(), recorded_hashes(mill)) == expected


@pytest.mark.long
@pytest.mark.parametrize("writer", ["delta-rs", "spark"])
def test_spark_connect_publishes_the_same_rows(
    tmp_path: Path, spark: Any, expected: Any, connect: ConnectServer, writer: str
) -> None:
    mill = a_mill(tmp_path, spark, writer=writer, remote=connect.remote, driver_records=0)
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (mill.everything(), recorded_hashes(mill)) == expected


@pytest.mark.long
@pytest.mark.parametrize("second", WRITERS)
def test_rows_that_spark_wrote_are_found_again_between_two_milliseconds(
    tmp_path: Path, spark: Any, second: str
) -> None:
    mill = sums(tmp_path, spark, window='Tumbling("1500 us")', trigger="on_update", writer="spark")
    mill.feed([an_event(1.0006)])
    mill.run()
    file = tmp_path / FILE
    file.write_text(file.read_text().replace('writer = "spark"', f'writer = "{second}"'))
    mill = Mill(Project.load(tmp_path), spark, "sums")
    mill.feed([an_event(1.0007)])
    mill.run()
    assert [(r["window_start"].microsecond, r["n"]) for r in mill.published()] == [(500, 2)]
