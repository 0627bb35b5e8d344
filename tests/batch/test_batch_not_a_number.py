"""NaN is greater than all numbers, also where staged rows are filtered: a rule that it breaks blocks the batch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.projects import an_event, sums
from tidemill.core.errors import AuditBlocked
from tidemill.project.project import Project

pytestmark = pytest.mark.spark

RULE = """\
      - {name: amount, logicalType: number}
    quality:
      - {name: small, type: custom, engine: tidemill, implementation: "amount <= 5"}
"""
NO_NUMBER = "amount * 1e308 * 10 - amount * 1e308 * 10"


def output(contract: str) -> str:
    column = "      - {name: amount, logicalType: integer}\n"
    assert column in contract
    return contract.replace(column, RULE)


@pytest.mark.parametrize(
    "settings", [{}, {"writer": "spark", "aggregate": "spark"}], ids=["without Spark", "all by Spark"]
)
def test_not_a_number_breaks_a_rule_about_a_bound(tmp_path: Path, spark: Any, settings: dict[str, Any]) -> None:
    mill = sums(tmp_path, spark, output=output, **settings)
    file = next(mill.project.folder.rglob("pipelines/*.py"))
    text = file.read_text()
    assert 'Sum("amount")' in text
    file.write_text(text.replace('Sum("amount")', f'Max("{NO_NUMBER}")').replace("import ", "import Max, ", 1))
    mill = replace(mill, project=Project.load(mill.project.folder))
    mill.feed([an_event(1, "a", 7)])
    with pytest.raises(AuditBlocked, match="small: 1 of 1 row"):
        mill.run(drain=True)
    assert mill.published("sums") == []
