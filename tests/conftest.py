"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from support.parts import take_part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[1]

TOGETHER = ("tests/kafka/", "tests/stores/")
"""Folders whose tests share a broker, or a store."""

# Time is no property of a law; and a run of the tests must be repeatable.
settings.register_profile("tidemill", deadline=None, max_examples=60, derandomize=True, database=None)
settings.load_profile("tidemill")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files of short tests come last: so no process ends with a long file while the other one has nothing to do."""
    take_part(config, items)
    heavy = {item.path for item in items if any(item.get_closest_marker(name) for name in ("spark", "long"))}
    items.sort(key=lambda item: item.path not in heavy)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """With `--dist loadfile`, the files that start the same server stay in one process, so that it starts once."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((first for first in TOGETHER if nodeid.startswith(first)), super()._split_scope(nodeid))

    return Together(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session", autouse=True)
def no_airflow_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads the Airflow of the person who runs it, nor writes to its folder."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow_of_nobody") / "airflow"))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_the_disk() -> Iterator[None]:
    """What a test writes need not outlive a loss of power. That files are synced, and when, has a test of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the checkout."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is not there")
    return folder


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark session as the product opens it, shared by all tests of a run."""
    from support.projects import SHORT_LIVED
    from tidemill.engine.spark.jars import jar_paths, locked_jars
    from tidemill.engine.spark.session import LocalSpark, open_session

    conf = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")), **SHORT_LIVED}
    place = LocalSpark(
        jars=jar_paths(ROOT / ".tidemill" / "jars", locked_jars(kafka=True, s3=True)), cores=2, conf=conf
    )
    session = open_session(place, name="tidemill-tests")
    yield session
    session.stop()
