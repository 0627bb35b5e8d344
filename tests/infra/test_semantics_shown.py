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


def rows(kind: str = "shown") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((ROOT / "docs" / "semantics_shown.toml").read_text())[kind]
    return found


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row['number']} {row['test'].partition('::')[2]}"[:70])
def test_a_row_names_a_test_that_exists(row: dict[str, Any]) -> None:
    assert row.keys() == {"number", "capability", "case", "test"}
    path, _, name = row["test"].partition("::")
    functions = [n.name for n in ast.parse((ROOT / path).read_text()).body if isinstance(n, ast.FunctionDef)]
    assert name.startswith("test_")
    assert name in functions


def places() -> dict[str, set[int]]:
    """The numbers of the rows that the page says to be shown at each place."""
    found: dict[str, set[int]] = {}
    page = (ROOT / "docs" / "semantics-shown.md").read_text()
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if len(cells) == 5 and cells[0].removeprefix("| ").isdigit():
            found.setdefault(cells[-2], set()).add(int(cells[0].removeprefix("| ")))
    return found


def test_every_row_is_shown_on_the_engine_or_it_is_said_why_not() -> None:
    found = places()
    assert found.keys() == {"the engine", "the engine, in a long form", "the tiny engine", "the rules"}
    page = (ROOT / "docs" / "semantics-shown.md").read_text()
    missing = {row["number"] for row in rows("missing")}
    assert IN_SCOPE - found["the engine"] - found["the tiny engine"] == missing
    assert all(f"| {row['number']} | {row['capability']} | {row['why']} |" in page for row in rows("missing"))
    assert found["the tiny engine"] <= found["the engine"]
    assert {row["number"] for row in rows()} - IN_SCOPE == OTHERS


@pytest.mark.parametrize(
    ("test", "place"),
    [
        ("core/ordered/test_buffers.py::test_row", "the rules"),
        ("machine/test_buffers_by_time.py::test_batches_of_any_size_give_the_same_rows", "the tiny"),
        ("amend/test_forgetting.py::test_of_a_million_keys_over_an_hour_the_state", "the engine, in a long form"),
        ("batch/test_batch_ordered_rows.py::test_rows_23_to_27_of_buffers", "the engine"),
    ],
)
def test_the_page_says_where_a_test_shows_something(test: str, place: str) -> None:
    lines = (ROOT / "docs" / "semantics-shown.md").read_text().splitlines()
    shown = [line.split(" | ")[-2] for line in lines if f"`tests/{test}" in line]
    assert shown
    assert all(each.startswith(place) for each in shown)


def test_rows_are_in_the_order_of_their_numbers() -> None:
    numbers = [row["number"] for row in rows()]
    assert numbers == sorted(numbers)
