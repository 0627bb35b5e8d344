"""What a contract promises as a service level has a name and a unit that mean something."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.contracts.findings import Level
from tidemill.contracts.lint import lint

COLUMN = "- {name: x, logicalType: string}"


def promised(level: str) -> str:
    return f"slaProperties:\n  - {{{level}}}"


@pytest.mark.parametrize(
    ("level", "words", "fix"),
    [
        ("property: latenzy, value: 4, unit: h", "`latenzy` is no service level", "did you mean `latency`?"),
        ("property: endOfSuport, value: 2030-01-01", "`endOfSuport` is no service level", "`endOfSupport`"),
        (
            "property: latency, value: 4, unit: parsec",
            "the text 'parsec', which is no unit of time",
            "did you mean `sec`",
        ),
        ("property: latency, value: 4, unit: xyzzy", "which is no unit of time", "write one of second, minute"),
        (
            "property: latency, value: abc, unit: h",
            "latency must be a number above 0, found the text 'abc'",
            "value: 4",
        ),
        ("property: Latency, value: -1, unit: h", "must be a number above 0, found the number -1", "value: 4"),
        ("property: freshness, value: 0, unit: days", "must be a number above 0, found the number 0", "value: 4"),
        ("property: retention, value: true", "must be a number above 0, found true", "value: 4"),
    ],
)
def test_a_service_level_that_nobody_can_mean_is_refused(
    file: Any, the_error: Any, level: str, words: str, fix: str
) -> None:
    error = the_error(file.an_output(COLUMN, top=promised(level)), level.partition(",")[0])
    assert words in error.message
    assert fix in error.fix


@pytest.mark.parametrize(
    "level",
    [
        "property: latency, value: 4, unit: d",
        "property: latency, value: 0.5, unit: Hours",
        "property: retention, value: PT4H",
        "property: generalAvailability, value: 2030-01-01",
        "property: timeOfAvailability, value: '09:00-08:00', element: x, driver: regulatory",
        "property: availability, value: 99.9, unit: percent",
    ],
)
def test_a_service_level_of_the_standard_is_taken(an_output: Any, level: str) -> None:
    assert an_output(COLUMN, top=promised(level)).fields


def test_another_service_level_is_information(file: Any) -> None:
    path = file.an_output(COLUMN, top=promised("property: carbon, value: 3"))
    [told] = [f for f in lint(path) if "carbon" in f.message]
    assert (told.severity, told.message) == (Level.INFORMATION, "slaProperties: `carbon` is not known, and not used")
