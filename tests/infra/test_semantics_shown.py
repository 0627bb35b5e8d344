"""The table of what is shown names tests that exist, and no row is forgotten."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = {10, 18, 20, 32, 33, 38, 40, 43, 54, 62, 77, 79, 82, 84, 86, 93, 100}


def test_every_row_that_is_said_to_be_shown_has_its_test() -> None:
    text = (ROOT / "docs" / "semantics-shown.md").read_text()
    shown = re.findall(r"^\| (\d+) \| .* \| `([\w/.]+)::(\w+)` \|$", text, re.MULTILINE)
    assert {int(row) for row, _, _ in shown} == ROWS
    assert len(shown) == len(re.findall(r"^\| \d+ \|", text, re.MULTILINE))
    for _, path, name in shown:
        functions = [n.name for n in ast.parse((ROOT / path).read_text()).body if isinstance(n, ast.FunctionDef)]
        assert name in functions
