"""Cells of the matrix that touch every part once; `make matrix` runs all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from matrix.cells import Cell, Servers
from matrix.suite import is_equal, results, started

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

PLAIN = Cell(log="file", storage="folder", place="local", writer="delta-rs")
OTHERS = (
    Cell(log="kafka", storage="s3", place="here", writer="delta-rs"),
    Cell(log="file", storage="s3", place="connect", writer="spark"),
    Cell(log="kafka", storage="s3", place="cluster", writer="delta-rs"),
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            patch.setenv(name, "set by the servers, taken back after the tests")
        yield started(stack, tmp_path_factory.mktemp("servers"), ("connect", "cluster"))


@pytest.fixture(scope="module")
def plain(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every other cell must equal."""
    [result] = results([PLAIN], servers, tmp_path_factory.mktemp("plain"))
    return result


def test_the_plain_cell_has_the_rows_of_the_raw_log(plain: dict[str, Any]) -> None:
    assert is_equal(plain, plain)
    assert all(plain["tables"].values())


@pytest.mark.parametrize("cell", OTHERS, ids=lambda cell: f"{cell.log}-{cell.storage}-{cell.place}-{cell.writer}")
def test_the_rows_are_the_same_everywhere(cell: Cell, plain: dict[str, Any], servers: Servers, tmp_path: Path) -> None:
    [result] = results([cell], servers, tmp_path)
    assert is_equal(result, plain)
