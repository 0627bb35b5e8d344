"""Another filter, or other columns, after the aggregates of a table whose windows have fired already."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.firings import changed, firings
from support.projects import NO_SPARK, Mill, an_event
from tidemill.core.errors import Incompatible
from tidemill.core.plan.amendments import Reason

DECIDED = Reason(by="ana", why="ten is enough")


def fired(folder: Path, accumulation: str, told: str) -> Mill:
    """A batch of one record of 7, whose window fires early of which a filter lets amounts from 5 on pass."""
    trigger = f'trigger=AfterWatermark(early=AfterCount(1)), accumulation="{accumulation}", {told}'
    mill = firings(folder, NO_SPARK, "Tumbling('10 s')", trigger=trigger, bounds=True, collect=False, delay="1 hour")
    mill = changed(mill, ".publish(", '.filter("amount >= 5").publish(')
    mill.feed([an_event(1, "a", 7)])
    mill.run()
    return mill


@pytest.mark.parametrize("other", [".filter('amount >= 10')", ".with_columns(amount='amount * 2')"])
def test_what_firings_take_back_stays_what_they_published(tmp_path: Path, tiny: None, other: str) -> None:
    mill = fired(tmp_path, "accumulating_and_retracting", 'operation="operation"')
    mill = changed(mill, '.filter("amount >= 5")', other)
    mill.feed([an_event(2, "a", 9)])
    with pytest.raises(Incompatible, match="results:") as refused:
        mill.run(from_now=DECIDED)
    assert "windows that are open cannot go on with it" in str(refused.value)
    assert "rebuild" in str(refused.value.fix)
    assert "--from-now" not in str(refused.value.fix)
    changed(mill, other, '.filter("amount >= 5")').run()
    signs = {"insert": 1, "delete": -1}
    assert sum(signs[row["operation"]] * row["amount"] for row in mill.published()) == 7 + 9


@pytest.mark.parametrize(("least", "left"), [(10, [16]), (20, [])])
def test_a_row_that_firings_update_follows_another_filter(
    tmp_path: Path, tiny: None, least: int, left: list[int]
) -> None:
    mill = fired(tmp_path, "accumulating_and_replacing", 'index="nth"')
    mill = changed(mill, "amount >= 5", f"amount >= {least}")
    mill.feed([an_event(2, "a", 9)])
    mill.run(from_now=DECIDED)
    assert [row["amount"] for row in mill.published()] == left
