"""Every construct of the standard is enforced, read as information, or refused by name; never read over in silence."""

from __future__ import annotations

import re
from collections import Counter

import jsonschema
import pytest

from support.odcs_constructs import constructs, schema
from support.odcs_outcomes import Outcome, Told, outcomes
from support.odcs_values import values
from support.short_forms import shortened

COUNT = 600
"""The standard has more constructs than this. Fewer would mean that the generator leaves some out."""

DESCRIPTIVE = ("servers", "team", "support", "price", "roles", "authoritativeDefinitions", "tags", "context", "domain")
"""Sections that promise nothing about values."""


@pytest.fixture(params=[True, False], ids=["records", "rows"])
def told(request: pytest.FixtureRequest) -> tuple[Told, ...]:
    return outcomes(is_input=request.param)


def test_every_construct_is_in_a_contract_that_the_official_schema_accepts() -> None:
    official = jsonschema.Draft201909Validator(schema())
    made = [*constructs(is_input=False), *values(is_input=False)]
    assert [c.path for c in made if "(3.0)" not in c.key and not official.is_valid(c.document)] == []
    assert len(made) > COUNT


def test_every_key_of_the_schema_is_tried() -> None:
    def keys(value: object) -> set[str]:
        if isinstance(value, list):
            return {key for item in value for key in keys(item)}
        if not isinstance(value, dict):
            return set()
        own = value.get("properties", {})
        named = set(own) if isinstance(own, dict) and all(isinstance(v, dict) for v in own.values()) else set()
        return named | {key for item in value.values() for key in keys(item)}

    tried = {re.split(r"[ :]", c.key)[0] for c in constructs(is_input=False)}
    assert keys(schema()) - tried == set()


def test_what_is_refused_is_named(told: tuple[Told, ...]) -> None:
    for each in told:
        if each.outcome is Outcome.REFUSED:
            # A position in the key needs the key.
            words = set(re.findall(r"\w+", each.construct.path.replace("primaryKeyPosition", "primaryKey")))
            assert words & set(re.findall(r"\w+", each.why)) or each.why.startswith("rule `"), each


def test_metrics_and_types_that_the_schema_only_lists_are_enforced() -> None:
    for is_input in (True, False):
        found = {each.construct.key: each.outcome for each in outcomes(is_input=is_input)}
        assert found["logicalType: boolean"] is Outcome.ENFORCED
        assert found["metric: invalidValues with pattern"] is Outcome.ENFORCED
        assert found["rule: validValues (3.0)"] is Outcome.ENFORCED
        assert found["metric: rowCount"] is (Outcome.REFUSED if is_input else Outcome.ENFORCED)
        assert found["query"] is Outcome.ENFORCED


def test_what_promises_nothing_about_values_is_never_refused(told: tuple[Told, ...]) -> None:
    for each in told:
        if each.construct.path.startswith(DESCRIPTIVE):
            assert each.outcome is Outcome.INFORMATION, each


def test_every_outcome_occurs(told: tuple[Told, ...]) -> None:
    assert min(Counter(each.outcome for each in told)[outcome] for outcome in Outcome) > 50


@pytest.mark.parametrize("version", shortened(["v3.0.2", "v3.1.0"], ["v3.0.2"]))
def test_a_construct_means_the_same_in_every_version(version: str) -> None:
    newest = {each.construct.path: each.said for each in outcomes(is_input=False)}
    assert {each.construct.path: each.said for each in outcomes(is_input=False, version=version)} == newest
