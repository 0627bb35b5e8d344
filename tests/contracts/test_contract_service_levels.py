"""What a contract promises as a service level has a name and a unit that mean something."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.contracts.findings import Level
from tidemill.contracts.lint import lint
from tidemill.contracts.load import load_contract

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
            "write one of second, minute",
        ),
        ("property: latency, value: 4, unit: ms", "'ms', which is no unit of time", "value: 0.25, unit: s"),
        ("property: latency, value: 4, unit: xyzzy", "which is no unit of time", "write one of second, minute"),
        (
            "property: latency, value: abc, unit: h",
            "latency must be a number above 0, found the text 'abc'",
            "value: 4",
        ),
        ("property: Latency, value: -1, unit: h", "must be a number above 0, found the number -1", "value: 4"),
        ("property: freshness, value: 0, unit: days", "must be a number above 0, found the number 0", "value: 4"),
        ("property: retention, value: true", "must be a number above 0, found true", "value: 4"),
        ("property: latency, value: 4", "latency is the number 4 without a unit", "unit: h"),
        ("property: latency, value: PT4H", "must be a number above 0, found the text 'PT4H'", "unit: h"),
        ("property: frequency, value: 1", "frequency is the number 1 without a unit", "unit: h"),
        ("property: freshness, value: 1e300, unit: y", "from a microsecond to 10,000 years", "value: 4"),
        ("property: freshness, value: 1e-9, unit: s", "from a microsecond to 10,000 years", "value: 4"),
        ("property: latency, value: 4, unit: h, element: ordres", "is about `ordres`", "did you mean `orders`?"),
        ("property: latency, value: 4, unit: h, element: 'x, orders.y'", "is about `orders.y`", "`orders.x`"),
        ("property: latency, value: 4, unit: h, element: 'sales'", "is about `sales`", "name one of orders, x"),
        ("property: timeOfAvailability, value: '25:61'", "must be hours of a day, found the text '25:61'", "'09:00-17"),
        ("property: timeOfAvailability, value: 9", "must be hours of a day, found the number 9", "'09:00-17"),
        ("property: generalAvailability, value: soon", "must be a day or a moment, found the text", "2030-01-31"),
        ("property: endOfLife, value: 2030-02-30", "must be a day or a moment", "2030-01-31"),
        ("property: availability, value: often", "must be a number, found the text 'often'", "as value"),
        ("property: availability, value: 101, unit: percent", "must be at most 100 percent", "as value"),
        ("property: throughput, value: -1", "must be a number above 0", "as value"),
        ("property: latency, value: 4, unit: h, element: x.nonsense", "is about `x.nonsense`", "name one of orders, x"),
        ("property: latency, value: 4, unit: h, element: orders.x.y", "is about `orders.x.y`", "`orders.x`"),
        ("property: latency, value: 4, unit: h, element: x.", "is about `x.`", "did you mean `x`?"),
        *(
            (f"property: timeOfAvailability, value: '{text}'", "must be hours of a day, found", "'09:00-17:00', with")
            for text in (
                "x 12:30 y",
                "24:01",
                "09:60",
                "09:00-",
                "١٢:30",
                "9",
                "09:00-25:00",
                "",
                "09:00 +15:00",
                "9:0",
            )
        ),
        *(
            (f"property: {of}, value: '{text}'", "must be a number, found the text", "as value")
            for of in ("availability", "throughput", "errorRate")
            for text in ("99%%", "1_0", "٩٩", "nan", "inf", "9 9", "%", "", "99 %x", "1e9999")
        ),
        ("property: availability, value: 150", "must be at most 100 percent, found the number 150", "as value"),
        ("property: availability, value: '100.00000000000000000001%'", "must be at most 100 percent", "as value"),
        ("property: availability, value: 99, unit: share", "must be at most 1, found the number 99", "as value"),
        (
            "property: availability, value: 99%, unit: share",
            "a number without %, because its unit is share",
            "as value",
        ),
        ("property: throughput, value: 99%", "a number without %, because it has no limit", "as value"),
        ("property: availability, value: 0", "must be a number above 0", "as value"),
        ("property: errorRate, value: 101%", "must be at most 100 percent", "as value"),
        ("property: endOfLife, value: '٢030-01-01'", "must be a day or a moment", "2030-01-31"),
        ("property: endOfLife, value: 2030", "must be a day or a moment, found the number 2030", "2030-01-31"),
        ("property: latency, value: '٤', unit: h", "must be a number above 0, found the text", "value: 4"),
        ("property: errorRate, value: -1", "must be a number from 0 on", "as value"),
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
        "property: availability, value: 100",
        "property: availability, value: 99.99 %",
        "property: availability, value: 1, unit: share",
        "property: errorRate, value: 0",
        "property: errorRate, value: 250, unit: an hour",
        "property: throughput, value: 1e6, unit: rows",
        "property: timeOfAvailability, value: '9:00 - 24:00'",
        "property: timeOfAvailability, value: '00:00-06:30, 22:15:00-23:59:59 UTC'",
        "property: timeOfAvailability, value: '09:00+02:00'",
        "property: latency, value: 4, unit: h, element: 'orders, orders.x'",
        "property: endOfLife, value: '2030-01-01T12:00:00Z'",
    ],
)
def test_a_service_level_of_the_standard_is_taken(an_output: Any, level: str) -> None:
    assert an_output(COLUMN, top=promised(level)).fields


def test_a_level_may_be_about_what_is_inside_a_column(an_output: Any) -> None:
    inner = "properties: [{name: b, logicalType: integer}]"
    column = f"- {{name: x, logicalType: array, items: {{logicalType: object, {inner}}}}}"
    for element in ("x.b", "orders.x.b"):
        top = promised(f"property: latency, value: 4, unit: d, element: {element}")
        assert an_output(column, top=top).levels[0].element == element


def test_a_level_of_another_object_is_not_of_this_table(file: Any) -> None:
    top = promised("property: freshness, value: 1, unit: d, element: other.ts")
    top += (
        "\n  - {property: freshness, value: 2, unit: d, element: orders.x}\n  - {property: latency, value: 3, unit: h}"
    )
    path = file.an_output(COLUMN, top=top)
    other = "  - {name: other, properties: [{name: ts, logicalType: timestamp}]}\n"
    path.write_text(path.read_text(encoding="utf-8") + other, encoding="utf-8")
    found = [(level.text, level.element) for level in load_contract(path, "orders").levels]
    assert found == [("2 d", "orders.x"), ("3 h", "")]


def test_a_service_level_stands_once(file: Any, the_error: Any) -> None:
    top = promised("property: latency, value: 4, unit: d") + "\n  - {property: Latency, value: 2, unit: h}  # HERE\n"
    top += "  - {property: latency, value: 2, unit: h, element: x}\n"
    top += "  - {property: latency, value: 2, unit: h, driver: regulatory}\n"
    error = the_error(file.an_output(COLUMN, top=top), "HERE")
    assert "Latency stands twice, first in line 7: nobody can tell which of them holds" in error.message


@pytest.mark.parametrize("kind", ["an_input", "an_output"])
@pytest.mark.parametrize("of", ["latency", "retention"])
def test_what_is_not_measured_is_said(file: Any, kind: str, of: str) -> None:
    path = getattr(file, kind)(COLUMN, top=promised(f"property: {of}, value: 4, unit: d"))
    told = [f.message for f in lint(path) if f.severity is Level.INFORMATION]
    if of == "latency":
        said = ["slaProperties: latency of records is for people; that of published tables is measured"]
        assert told == (said if kind == "an_input" else [])
    else:
        only = "only freshness and latency of published tables are measured"
        assert told == [f"slaProperties: retention is for people; {only}"]


def test_another_service_level_is_information(file: Any) -> None:
    path = file.an_output(COLUMN, top=promised("property: carbon, value: 3"))
    [told] = [f for f in lint(path) if "carbon" in f.message]
    assert (told.severity, told.message) == (Level.INFORMATION, "slaProperties: `carbon` is not known, and not used")
