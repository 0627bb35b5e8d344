"""Calendar windows of zones for which Spark and Python have other rules are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.projects import sums
from tidemill.core.errors import DeclarationError
from tidemill.core.time.calendar import CalendarPanes
from tidemill.core.time.panes import Window
from tidemill.engine.aggregate.time_zones import check_zone

pytestmark = pytest.mark.spark


def sink_of(folder: Path, spark: Any, window: str) -> Any:
    [sink] = sums(folder, spark, window=window).project.pipeline("sums").sinks
    return sink


@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
def test_zones_that_both_know_alike_are_taken(tmp_path: Path, spark: Any, unit: str) -> None:
    check_zone(spark, sink_of(tmp_path, spark, f'Calendar("{unit}", "Europe/Berlin")'), "here")


def test_a_rule_that_differs_is_told_with_both_ends(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sink_of(tmp_path, spark, 'Calendar("month", "Europe/Berlin")')
    right = CalendarPanes.window
    hour = 3_600_000_000
    monkeypatch.setattr(CalendarPanes, "window", lambda p, n: Window(right(p, n).start, right(p, n).end + hour))
    with pytest.raises(DeclarationError, match=r"by the time zones of Python, and at .* by those of Java"):
        check_zone(spark, sink, "here")


def test_a_zone_that_java_does_not_know_is_told(tmp_path: Path, spark: Any) -> None:
    sink = sink_of(tmp_path, spark, 'Calendar("month", "Europe/Berlin")')
    object.__setattr__(sink.window, "zone", "Factory")
    with pytest.raises(DeclarationError, match="Java does not know the time zone Factory"):
        check_zone(spark, sink, "here")
