"""What tests of batches share because it takes seconds to make."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.connect import ConnectServer
from support.projects import Mill
from support.recovery import a_begun_mill, a_wide_mill, recomputed
from tidemill.core.protocol import failpoints
from tidemill.project.project import Project
from tidemill.project.settings import FILE


@pytest.fixture(autouse=True)
def _answers_that_can_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test loses its own: an answer is lost once in a process."""
    monkeypatch.setattr(failpoints, "_lost", set())


@pytest.fixture(scope="session")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A Spark Connect server of our own."""
    with ConnectServer(tmp_path_factory.mktemp("connect")) as server:
        yield server


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Callable[..., Mill]:
    """Gives a copy of `a_begun_mill` in a folder: its first batch is run once for each writer."""
    made: dict[str, Path] = {}

    def copy(folder: Path, writer: str = "delta-rs") -> Mill:
        if writer not in made:
            made[writer] = tmp_path_factory.mktemp("begun")
            a_begun_mill(made[writer], spark, writer=writer)
        shutil.copytree(made[writer], folder, dirs_exist_ok=True)
        return Mill(Project.load(folder), spark, "sums")

    return copy


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Callable[..., Mill]:
    """The same for `a_wide_mill`.

    With `in_workers`, Spark's workers aggregate, though there are few records. They also do with `remote`, which is
    where processes of its own run Spark; `Mill.run` uses the session of the tests.
    """
    made: dict[str, Path] = {}

    def copy(folder: Path, writer: str = "delta-rs", *, remote: str = "", in_workers: bool = False) -> Mill:
        if writer not in made:
            made[writer] = tmp_path_factory.mktemp("wide")
            a_wide_mill(made[writer], spark, writer=writer)
        shutil.copytree(made[writer], folder, dirs_exist_ok=True)
        file = folder / FILE
        text = file.read_text()
        if remote or in_workers:
            text = text.replace("[limits]", "[limits]\ndriver_records = 0")
        if remote:
            text = text.replace("[spark]", f'[spark]\nremote = "{remote}"')
        file.write_text(text)
        return Mill(Project.load(folder), spark, "wide")

    return copy


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory, wide: Callable[..., Mill]) -> dict[str, list[dict[str, Any]]]:
    """Every table of a wide mill after a run in which nothing fails, which is what the raw log gives."""
    mill = wide(tmp_path_factory.mktemp("whole"))
    mill.catch_up()
    tables = mill.everything()
    assert {name: len(rows) for name, rows in tables.items()} == {"sums": 9, "totals": 5, "quarantine": 2, "late": 6}
    assert {name: tables[name] for name in ("sums", "totals")} == recomputed(mill)
    return tables


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory: pytest.TempPathFactory, begun: Callable[..., Mill]) -> dict[str, list[dict[str, Any]]]:
    """Every table after a run in which nothing fails."""
    mill = begun(tmp_path_factory.mktemp("unbroken"))
    mill.catch_up()
    tables = mill.everything()
    assert {name: len(rows) for name, rows in tables.items()} == {"sums": 6, "quarantine": 1, "late": 1}
    return tables
