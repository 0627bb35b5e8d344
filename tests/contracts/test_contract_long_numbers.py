"""Numbers with more digits than a float keeps are the numbers that they are written as, or a finding says otherwise."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from decimal import Decimal as Exact
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidemill.contracts.changes.strictness import compared
from tidemill.contracts.conditions import Rule
from tidemill.contracts.lint import Finding, lint
from tidemill.contracts.masks import broken
from tidemill.core.contract.contract import Between, Contract, OneOf
from tidemill.core.contract.long_number import LongNumber, number_of
from tidemill.core.contract.row_checks import MultipleOf
from tidemill.core.contract.schema import Decimal
from tidemill.core.contract.tolerance import Tolerance

Load = Callable[..., Contract]
TheError = Callable[[Path, str], Finding]

COLUMN = """
- name: x
  logicalType: number
  physicalType: decimal(38,20)
  logicalTypeOptions: {OPTIONS}
"""
LONG, NEXT = "0.12345678901234567891", "0.12345678901234567892"
TYPE = Decimal(38, 20)


def long(text: str) -> LongNumber:
    number = number_of(text)
    assert isinstance(number, LongNumber)
    return number


def column(options: str, more: str = "", physical: str = "decimal(38,20)") -> str:
    return COLUMN.replace("OPTIONS", options).replace("decimal(38,20)", physical) + more


@pytest.mark.parametrize("text", ["0.1", "1e3", "2.50", "1e308", "1e23", "-0.0", "12345678901234.5"])
def test_a_number_that_a_float_keeps_is_a_float(text: str) -> None:
    assert type(number_of(text)) is float


@pytest.mark.parametrize("text", ["1e400", "-1e400", "1e-400", "1e-99999999", "1e-99999999999999999999"])
def test_a_number_beyond_all_floats_is_refused_and_holds_nobody_up(file: Any, the_error: TheError, text: str) -> None:
    assert number_of(text) is None
    assert number_of("0" + text[text.index("e") :]) == 0
    assert text in the_error(file.an_output(column(f"minimum: {text}")), "minimum").message


def test_a_long_number_keeps_its_digits_wherever_it_goes() -> None:
    number, other = long(LONG), long(NEXT)
    assert (str(number), repr(number), f"{number}") == (LONG, LONG, LONG)
    assert number < other
    assert other > number
    assert number != other
    assert number == long(LONG)
    assert 0.1 < number < 1
    assert number != float(number)
    assert len({number, other, float(number)}) == 3
    assert repr(pickle.loads(pickle.dumps(number))) == LONG
    assert number_of("9007199254740993.0") == 9007199254740993


@pytest.mark.parametrize(
    ("option", "predicate"),
    [
        (f"minimum: {LONG}", f"`x` >= {LONG}"),
        ("maximum: 12345678901234567.89", "`x` <= 12345678901234567.89"),
        (f"multipleOf: {LONG}", f"`x` % {LONG} = 0"),
        ("minimum: 9007199254740993.0", "`x` >= 9007199254740993"),
    ],
)
def test_bounds_of_decimals_are_exact(an_input: Load, option: str, predicate: str) -> None:
    assert [rule.predicate for rule in an_input(column(option)).row_rules] == [predicate]


def test_rows_are_compared_with_all_digits() -> None:
    rows = pa.table({"x": pa.array([Exact(LONG), Exact(NEXT)], pa.decimal128(38, 20))})
    for check, expected in (
        (Between(column="x", minimum=long(NEXT)), [True, False]),
        (OneOf(column="x", values=(long(LONG),)), [False, True]),
        (MultipleOf(column="x", factor=long(LONG)), [False, True]),
    ):
        assert broken(check, rows, {"x": TYPE}).to_pylist() == expected, check


def test_a_multiple_of_38_digits_is_computed_with_all_of_them() -> None:
    values = [Exact("123456789012345678901234567890123456.50"), Exact("123456789012345678901234567890123456.51")]
    rows = pa.table({"x": pa.array(values, pa.decimal128(38, 2))})
    assert broken(MultipleOf(column="x", factor=0.5), rows, {"x": Decimal(38, 2)}).to_pylist() == [False, True]


def test_values_of_an_enum_and_of_a_metric_are_exact(an_input: Load, an_output: Load) -> None:
    enum = f"  enum: [{{value: {LONG}}}, {{value: 1.5}}]\n"
    assert an_input(column("", enum)).row_rules[0].predicate == f"`x` IN ({LONG}, 1.5)"
    metric = f"  quality: [{{metric: invalidValues, arguments: {{validValues: [{LONG}]}}, mustBe: 0}}]\n"
    [rule] = an_output(column("", metric)).table_rules
    assert rule.check == OneOf(column="x", values=(long(LONG),))


def test_contracts_whose_long_numbers_differ_have_different_fingerprints(an_output: Load) -> None:
    prints = {an_output(column(f"minimum: {text}")).fingerprint for text in (LONG, NEXT, repr(float(LONG)))}
    assert len(prints) == 3


@pytest.mark.parametrize(
    ("before", "after", "kind"), [(LONG, NEXT, "rule-stricter"), (NEXT, LONG, "rule-weaker"), (LONG, LONG, None)]
)
def test_a_change_of_the_last_digit_is_a_change(before: str, after: str, kind: str | None) -> None:
    old, new = (Rule(line=1, name="x", condition=Between(column="x", minimum=long(text))) for text in (before, after))
    assert compared(old, new) == kind


def test_bounds_that_differ_in_the_last_digit_exclude_each_other(file: Any, the_error: TheError) -> None:
    found = the_error(file.an_output(column(f"minimum: {NEXT}, maximum: {LONG}")), "maximum")
    assert NEXT in found.message
    assert LONG in found.message


def test_a_number_that_no_decimal_holds_is_refused_with_all_its_digits(file: Any, the_error: TheError) -> None:
    text = "1." + "1" * 38
    found = the_error(file.an_output(column(f"minimum: {text}")), "minimum")
    assert "at most 38 digits" in found.message
    assert text in found.message


@pytest.mark.parametrize(("text", "double"), [(LONG, repr(float(LONG))), ("9007199254740993.0", "9007199254740992.0")])
@pytest.mark.parametrize("more", ["", "  enum: [{value: TEXT}]\n"])
def test_a_double_that_keeps_fewer_digits_is_a_warning(file: Any, text: str, double: str, more: str) -> None:
    options = "" if more else f"minimum: {text}"
    path = file.an_output(column(options, more.replace("TEXT", text), physical="double"))
    [found] = [each for each in lint(path) if "more digits" in each.message]
    assert text in found.message
    assert double in found.message
    assert found.line > 1
    assert "decimal(p,s)" in found.fix


def test_shares_of_rows_are_compared_without_a_rounding() -> None:
    tolerance = Tolerance(comparison="mustBeLessThan", numbers=(0.07,), percent=True)
    assert not tolerance.allows(7, 10_000)
    assert Tolerance(comparison="mustBe", numbers=(0.07,), percent=True).is_possible()


@pytest.mark.parametrize("number", ["1e308", "9223372036854775808", "9007199254740993.5"])
@pytest.mark.parametrize("metric", ["rowCount", "nullValues"])
def test_a_number_of_rows_that_no_table_has_is_refused(
    file: Any, the_error: TheError, metric: str, number: str
) -> None:
    rule = f"- {{metric: {metric}, mustBe: {number}}}"
    path = file.an_output(column("", f"  quality: [{rule[2:]}]"))
    if metric == "rowCount":
        path = file.an_output(column(""), quality=rule)
    assert "no number of rows is" in the_error(path, "mustBe").message
