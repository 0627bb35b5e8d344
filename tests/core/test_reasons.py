"""Reasons for a rejection: codes are stable and bounded, whatever records hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.contract.reasons import CODES, detail_of, sort_of, stored_reason, tally_reasons

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "reasons.md"

DETAILS = {
    "tombstone (no value)": "tombstone",
    "empty value": "empty",
    "not UTF-8 at byte 17": "not_utf8",
    '`cents`: expected an integer, found "abc"': "wrong_value(cents)",
    "`items[17].price`: expected a number of at most 9 digits, 2 of them after the point, found 1e99": (
        "wrong_value(items[].price)"
    ),
    '`status`: expected three digits, found "x: y"': "wrong_value(status)",
    "expected one line, found a line break in it": "wrong_value",
    'expected the end of the line after `agent`, found "…"': "wrong_value",
    "`n`: number 99999999999 does not fit 32 bits": "too_large(n)",
    "`user`: required, but null": "null(user)",
    "`user.name`: required, but missing": "missing(user.name)",
    "unknown field `one of millions`": "unknown_field",
    'malformed JSON at byte 3: invalid character, found "x"': "malformed_json",
    "unpaired surrogate escape in JSON text": "malformed_json",
    "cut JSON at byte 4": "cut_json",
    "expected a JSON object, found 5": "not_an_object",
    "nested deeper than 128 levels": "too_deep",
    "does not fit the contract": "misfit",
    "does not fit the contract: Expected `int`, got `str` - at `$.a[...]`": "misfit",
    "expected 5 columns, found 700": "wrong_columns",
    "column 12345: a quote is not closed": "wrong_quotes",
    "no event time": "no_event_time",
    "event time in the future": "future",
    "watermark in the future": "future_watermark",
    "watermark too early: its windows would begin before year 1": "early_watermark",
    "event time too early: its windows would begin before year 1": "too_early",
    "batch diverted by ann: see the ticket": "diverted",
    "`odd (name)`: required, but null": "null",
    "`two\nlines`: required, but null": "null",
}


@pytest.mark.parametrize(("detail", "sort"), DETAILS.items())
def test_a_reason_is_stored_with_its_code_and_one_of_before_is_of_the_same_sort(detail: str, sort: str) -> None:
    stored = stored_reason(detail)
    assert stored == f"{sort}: {detail}"
    assert (sort_of(stored), detail_of(stored)) == (sort, detail)
    assert (sort_of(detail), detail_of(detail)) == (sort, detail)


@pytest.mark.parametrize("rule", ["cents.minimum", "a rule: with a colon", "status code is known", "primaryKey", "(x)"])
def test_a_broken_rule_is_called_as_it_is(rule: str) -> None:
    assert (stored_reason(rule), sort_of(rule), detail_of(rule)) == (rule, rule, "")


def test_every_code_has_a_detail_that_belongs_to_it_alone() -> None:
    assert {sort.partition("(")[0] for sort in DETAILS.values()} == {code.name for code in CODES}
    for detail in DETAILS:
        found = [code.name for code in CODES if re.match(code.pattern, detail, re.DOTALL)]
        assert len(found) == 1, detail


def test_codes_of_the_documentation_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `([a-z_0-9]+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(code.name, code.meaning) for code in CODES]


@given(st.lists(st.text(max_size=60), max_size=20))
def test_sorts_do_not_depend_on_what_was_found(found: list[str]) -> None:
    texts = [stored_reason(f"`cents`: expected an integer, found {text}") for text in found]
    texts += [stored_reason(f"unknown field `{text}`") for text in found]
    assert set(tally_reasons((text, 1) for text in texts)) == (
        {"wrong_value(cents)", "unknown_field"} if found else set()
    )
    assert sum(tally_reasons((text, 2) for text in texts).values()) == 4 * len(found)
