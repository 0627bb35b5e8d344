"""What the file should say instead: the fix of an error names it."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.contracts.extensions import TIMES
from tidemill.contracts.fields import _MEANT, _TYPES
from tidemill.contracts.findings import Level
from tidemill.contracts.lint import lint
from tidemill.core.contract.contract import OneOf
from tidemill.engine.read.decode.options import TimeUnit


def fixes(path: Any) -> list[str]:
    return [f.fix for f in lint(path) if f.severity is Level.ERROR]


@pytest.mark.parametrize(
    ("logical", "value", "fix"),
    [
        ("string", "CHF", "write {value: CHF}"),
        ("string", "'12'", 'write {value: "12"}'),
        ("integer", "12", "write {value: 12}"),
        ("boolean", "true", "write {value: true}"),
        ("string", "[a]", "write {value: ...}"),
    ],
)
def test_a_plain_value_in_an_enum_is_told_as_it_must_be_written(
    file: Any, an_output: Any, logical: str, value: str, fix: str
) -> None:
    text = "- {{name: x, logicalType: {}, enum: [{}]}}"
    assert fixes(file.an_output(text.format(logical, value))) == [fix]
    if "..." not in fix:
        [rule] = an_output(text.format(logical, fix.removeprefix("write "))).table_rules
        assert isinstance(rule.check, OneOf)


@pytest.mark.parametrize(("logical", "value", "fix"), [("string", "12", "'12'"), ("integer", "'12'", "12")])
def test_a_value_of_an_enum_with_wrong_quotes_is_told_with_right_ones(
    file: Any, logical: str, value: str, fix: str
) -> None:
    [found] = fixes(file.an_input(f"- {{name: x, logicalType: {logical}, enum: [{{value: {value}}}]}}"))
    assert found.endswith(f": {fix}")


@pytest.mark.parametrize(
    ("named", "fix"),
    [
        ("datetime", "write logicalType: timestamp"),
        ("text", "write logicalType: string"),
        ("str", "write logicalType: string"),
        ("varchar(20)", "write logicalType: string"),
        ("int", "write logicalType: integer"),
        ("float", "write logicalType: number"),
        ("bool", "write logicalType: boolean"),
        ("Integer", "did you mean `integer`?"),
    ],
)
def test_a_type_of_another_language_is_told_in_the_standards_words(file: Any, named: str, fix: str) -> None:
    assert fixes(file.an_input(f"- {{name: x, logicalType: {named}}}")) == [fix]
    assert {meant.split()[0] for meant in _MEANT.values()} <= set(_TYPES)


def test_an_option_that_no_type_has_is_unknown(file: Any) -> None:
    text = "- {name: x, logicalType: string, logicalTypeOptions: {minLenght: 3}}"
    [finding] = [f for f in lint(file.an_input(text)) if f.severity is Level.ERROR]
    assert finding.message == "`x`.minLenght: unknown option; supported: minLength, maxLength, pattern, format"
    assert finding.fix == "did you mean `minLength`?"


@pytest.mark.parametrize(
    ("logical", "option"),
    [
        ("integer", "minimum: '0'"),
        ("number", "maximum: '-1.5'"),
        ("string", "maxLength: '20'"),
        ("integer", "multipleOf: '5'"),
    ],
)
def test_a_number_in_quotes_is_told_without_them(file: Any, logical: str, option: str) -> None:
    path = file.an_input(f"- {{name: x, logicalType: {logical}, logicalTypeOptions: {{{option}}}}}")
    number = option.partition("'")[2].rstrip("'")
    assert fixes(path) == [f"remove the quotes: {number}"]


def test_bounds_of_a_metric_in_quotes_are_told_without_them(file: Any) -> None:
    quality = "- {metric: rowCount, mustBeGreaterThan: '1'}"
    assert fixes(file.an_output("- {name: x, logicalType: string}", quality=quality)) == ["remove the quotes: 1"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("timestamp", "seconds", "one of iso, epoch_s, epoch_ms, epoch_us"), ("delimiter", ";;", "one ASCII character")],
)
def test_a_value_that_an_option_of_a_format_does_not_have_is_an_error_of_its_line(
    file: Any, the_error: Any, name: str, value: str, expected: str
) -> None:
    custom = f"- {{property: format, value: csv}}\n- {{property: {name}, value: '{value}'}}"
    found = the_error(file.an_input("- {name: x, logicalType: string}", custom=custom), f"'{value}'")
    assert expected in found.message
    assert set(TimeUnit) == set(TIMES)


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("critical", "did you mean `error`?"),
        ("High", "did you mean `error`?"),
        ("warn", "did you mean `warning`?"),
        ("minor", "did you mean `warning`?"),
        ("eror", "did you mean `error`?"),
        ("purple", "write error or warning"),
    ],
)
def test_a_severity_of_another_tool_is_an_error_that_names_the_nearest(
    file: Any, the_error: Any, word: str, fix: str
) -> None:
    rule = f"quality: [{{metric: nullValues, mustBe: 0, severity: {word}}}]"
    error = the_error(file.an_output(f"- {{name: x, logicalType: integer, {rule}}} # HERE"), "HERE")
    assert error.message == f"severity is the text '{word}'; supported: error (blocks), warning (is recorded)"
    assert error.fix == fix
