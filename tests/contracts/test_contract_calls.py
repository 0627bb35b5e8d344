"""Lint names the line of a rule whose call Spark would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.contracts.lint import lint

COLUMNS = "- {name: t, logicalType: string, description: d, primaryKey: true}\n"


@pytest.mark.parametrize("condition", ["size(t) > 0", "upper(t, t) = 'A'", "array_contains(t, 'x')"])
def test_a_rule_with_a_call_that_spark_refuses_is_an_error(file: Any, condition: str) -> None:
    rule = f'- {{type: custom, engine: tidemill, name: called, implementation: "{condition}"}}'
    [found] = [finding for finding in lint(file.an_output(COLUMNS, quality=rule)) if "refuses it" in finding.message]
    assert found.line > 1
    assert found.severity == "error"
    assert "the predicate cannot be run" in found.message
