"""Whatever a contract means is in its fingerprint: no part that is added is left out by mistake."""

from __future__ import annotations

from dataclasses import fields, replace
from enum import Enum
from typing import Any, get_args

import pytest

from tidemill.core.contract.contract import (
    Between,
    Check,
    Compare,
    Contract,
    Expectation,
    Format,
    Holds,
    LengthBetween,
    Matches,
    NotNull,
    OneOf,
    RowCountBetween,
    RowRule,
    TableRule,
    Unique,
)
from tidemill.core.contract.row_checks import (
    Bounded,
    ItemsBetween,
    ItemsDistinct,
    MultipleOf,
    NoneOf,
    NotNullInside,
)
from tidemill.core.contract.schema import Array, Decimal, Field, Object, Scalar
from tidemill.core.contract.tolerance import Tolerance
from tidemill.core.identity.contracts import fingerprint_of

WHOLE = Contract(
    name="c",
    version="1",
    fields=(Field(name="a", type=Scalar.INTEGER), Field(name="t", type=Scalar.STRING)),
    format=Format.JSON,
    row_rules=(RowRule(name="r", predicate="a > 0"),),
    options={"o": "1"},
)
CHECKS = [
    NotNull(column="a"),
    Unique(columns=("a",)),
    Between(column="a", minimum=1, maximum=2),
    OneOf(column="a", values=(1,)),
    Matches(column="t", pattern="x"),
    LengthBetween(column="t", minimum=1, maximum=2),
    RowCountBetween(minimum=1, maximum=2),
    Compare(left="a", operator="<", right="t"),
    Holds(columns=("a",), predicate="a > 1"),
    Expectation(column="a", kind="expect_column_max_to_be_between", arguments=(("column", "a"), ("max_value", 1))),
    Bounded(column="a", operator=">", bound="2024-01-31"),
    MultipleOf(column="a", factor=2),
    NoneOf(column="a", values=(1,)),
    ItemsBetween(column="a", minimum=1, maximum=2),
    ItemsDistinct(column="a"),
    NotNullInside(column="a", path=("b",)),
]
NO_MEANING = {"name", "version", "description", "source", "fingerprint", "levels"}
"""Of a contract."""
NO_MEANING_OF_PARTS = {"description", "pattern"}
"""Of a field or a rule: the predicate of a rule says what its pattern says."""


def others(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case Enum():
            return next(each for each in type(value) if each is not value)
        case int():
            return value + 1
        case str():
            return f"{value}x"
        case tuple():
            return (*value, *value[:1], others(value[0])) if value else ("a",)
        case dict():
            return {**value, "more": "1"}
        case _:
            return replace(value, **{fields(value)[0].name: others(getattr(value, fields(value)[0].name))})


def test_every_check_has_its_case_here() -> None:
    assert {type(check) for check in CHECKS} == set(get_args(Check))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: type(check).__name__)
def test_every_part_of_a_contract_is_in_its_fingerprint_or_left_out_on_purpose(check: Check) -> None:
    def of(rule: TableRule, **more: Any) -> str:
        return fingerprint_of(replace(WHOLE, table_rules=(rule,), **more))

    rule = TableRule(name="t", check=check)
    whole = of(rule)
    for part in fields(check):
        assert of(replace(rule, check=replace(check, **{part.name: others(getattr(check, part.name))}))) != whole, part
    for part in fields(rule):
        tolerance = Tolerance(comparison="mustBe", numbers=(1,))
        value = tolerance if part.name == "tolerance" else others(getattr(rule, part.name))
        changed = of(replace(rule, **{part.name: value}))
        assert (changed == whole) == (part.name == "description"), part
    for part in fields(WHOLE):
        if part.name != "table_rules":
            changed = of(rule, **{part.name: others(getattr(WHOLE, part.name))})
            assert (changed == whole) == (part.name in NO_MEANING), part


@pytest.mark.parametrize(
    "part", [*WHOLE.fields, *WHOLE.row_rules], ids=lambda part: f"{type(part).__name__} {part.name}"
)
def test_every_part_of_a_field_and_a_rule_is_in_the_fingerprint_but_what_describes_it(part: Any) -> None:
    name = "fields" if isinstance(part, Field) else "row_rules"
    for each in fields(part):
        value = Matches(column="t", pattern="x") if each.name == "pattern" else others(getattr(part, each.name))
        other = replace(part, **{each.name: value})
        changed = replace(WHOLE, **{name: tuple(other if p is part else p for p in getattr(WHOLE, name))})
        assert (fingerprint_of(changed) == fingerprint_of(WHOLE)) == (each.name in NO_MEANING_OF_PARTS), each


def test_the_parts_of_types_are_in_the_fingerprint() -> None:
    kinds = [
        Decimal(9, 2),
        Decimal(8, 2),
        Decimal(9, 1),
        Array(Decimal(9, 2)),
        Object((Field(name="a", type=Scalar.INTEGER),)),
    ]
    whole = [replace(WHOLE, fields=(Field(name="a", type=each),)) for each in kinds]
    assert len({fingerprint_of(contract) for contract in whole}) == len(kinds)
    assert [len(fields(each)) for each in (Decimal, Array, Object)] == [2, 1, 1], "say what a new part means"


@pytest.mark.parametrize("part", fields(Tolerance), ids=lambda part: part.name)
def test_every_part_of_a_tolerance_is_in_the_fingerprint(part: Any) -> None:
    def of(tolerance: Tolerance) -> str:
        rule = TableRule(name="t", check=NotNull(column="a"), tolerance=tolerance)
        return fingerprint_of(replace(WHOLE, table_rules=(rule,)))

    one = Tolerance(comparison="mustBe", numbers=(1,))
    assert of(replace(one, **{part.name: others(getattr(one, part.name))})) != of(one)
