"""Each row of what is shown names a test that exists, and no row is forgotten."""

from __future__ import annotations

import ast
import tomllib
from typing import Any

import pytest

from support.projects import ROOT

IN_SCOPE = {18, 19, 20, *range(23, 54), *range(65, 70), 90}
"""Windows, triggers, refinements and what they need."""

OTHERS = {10, 54, 62, 77, 79, 82, 84, 86, 93, 100}

TO_COME = {
    19: "state has no Bloom filters and no bitmaps",
    69: "no deduplication by the id of a record",
}
"""Rows that no test shows on the engine, and why."""


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((ROOT / "docs" / "semantics_shown.toml").read_text())["shown"]
    return found


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row['number']} {row['test'].partition('::')[2]}"[:70])
def test_a_row_names_a_test_that_exists(row: dict[str, Any]) -> None:
    assert row.keys() == {"number", "capability", "case", "test"}
    path, _, name = row["test"].partition("::")
    functions = [n.name for n in ast.parse((ROOT / path).read_text()).body if isinstance(n, ast.FunctionDef)]
    assert name.startswith("test_")
    assert name in functions


def test_every_row_is_shown_on_the_engine_or_it_is_said_why_not() -> None:
    on_the_engine = {row["number"] for row in rows() if not row["test"].startswith("tests/core/")}
    assert IN_SCOPE - on_the_engine == TO_COME.keys()
    assert {row["number"] for row in rows()} - IN_SCOPE == OTHERS


def test_rows_are_in_the_order_of_their_numbers() -> None:
    numbers = [row["number"] for row in rows()]
    assert numbers == sorted(numbers)
