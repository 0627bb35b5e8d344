"""Comparing what tables hold with what they must hold: each difference is found, and counted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from demo.oracle import VALUES, Contents, Place, Window, busiest, total
from demo.oracle_comparison import SKETCH_IS_EXACT, Differences, compare

HOME: Window = (0, "/")
APPENDED = 6


def a_row(requests: int = 3, **values: Any) -> dict[str, Any]:
    return {**dict.fromkeys(VALUES, 1), "requests": requests, "visitors": 2, "bytes": None, **values}


def contents(rows: Mapping[Window, list[dict[str, Any]]] | None = None, **side_outputs: list[Place]) -> Contents:
    """Three requests of one page, two rejected records and a late one, but for what is given."""
    places = {"rejected": [(0, 5), (1, 7)], "late": [(0, 9)], **side_outputs}
    return Contents(
        rows={HOME: [a_row()]} if rows is None else rows,
        side_outputs={outcome: Counter(where) for outcome, where in places.items()},
    )


def differences(found: Contents, expected: Contents | None = None) -> Differences:
    return compare(found, expected or contents(), appended=APPENDED)


def test_same_contents_have_no_difference():
    assert differences(contents()).none
    assert differences(contents()).examples == ()


def test_row_that_is_missing_is_as_many_lost_as_it_counts():
    found = differences(contents({}))
    assert (found.lost, found.doubled) == (3, 0)
    assert found.examples == ("/ at 1970-01-01 00:00: 3 requests are missing",)


def test_row_that_counts_too_little_is_lost_and_too_much_is_doubled():
    assert differences(contents({HOME: [a_row(2)]})).lost == 1
    assert differences(contents({HOME: [a_row(5)]})).doubled == 2


def test_row_that_is_there_twice_is_doubled():
    found = differences(contents({HOME: [a_row(), a_row()]}))
    assert (found.lost, found.doubled, found.different) == (0, 3, 1)


def test_row_that_should_not_be_there_is_doubled():
    assert differences(contents({HOME: [a_row()], (0, "/x"): [a_row(1)]})).doubled == 1


def test_losses_and_doubles_do_not_hide_each_other():
    found = differences(contents({(0, "/x"): [a_row(3)]}))
    assert (found.lost, found.doubled) == (3, 3)


@pytest.mark.parametrize("outcome", ["rejected", "late"])
def test_record_that_was_not_kept_is_lost(outcome):
    found = differences(contents(**{outcome: []}))
    assert found.lost == total(contents(), outcome)


def test_record_that_was_kept_twice_is_doubled():
    assert differences(contents(late=[(0, 9), (0, 9)])).doubled == 1


def test_record_that_should_not_have_been_late_is_a_difference():
    found = differences(contents(late=[(0, 9), (3, 3)]))
    assert found.different == 1
    assert found.examples == ("record 3:3 is late, but had not to be",)


@pytest.mark.parametrize("name", [name for name in VALUES if name != "requests"])
def test_any_other_value_is_a_difference(name):
    found = differences(contents({HOME: [a_row(**{name: 99})]}))
    assert (found.lost, found.doubled, found.different) == (0, 0, 1)
    assert name in found.examples[0]


def test_sketches_of_few_values_must_agree_and_of_many_nearly():
    def visitors(found: int, expected: int) -> bool:
        rows = ({HOME: [a_row(visitors=n)]} for n in (found, expected))
        return differences(*map(contents, rows)).none

    assert not visitors(SKETCH_IS_EXACT, SKETCH_IS_EXACT + 1)
    assert visitors(1_000, 1_040)
    assert not visitors(1_000, 1_200)


def test_record_that_no_batch_read_is_lost():
    expected = contents(rejected=[(0, 5)], unread=[(1, 7)])
    assert differences(contents(rejected=[(0, 5)]), expected).lost == 1


def test_record_that_two_batches_read_is_doubled():
    expected = contents({HOME: [a_row(4)]})
    assert differences(contents({HOME: [a_row(4)]}), expected).doubled == 1


def test_record_that_was_appended_and_is_not_in_the_log_is_lost():
    assert compare(contents(), contents(), appended=APPENDED + 2).lost == 2


def test_busiest_pages_add_up_their_minutes():
    rows = {(0, "/a"): [a_row(3)], (60, "/a"): [a_row(3)], (0, "/b"): [a_row(5)], (0, "/c"): [a_row(1)]}
    assert busiest(contents(rows), 2) == [("/a", 6), ("/b", 5)]
