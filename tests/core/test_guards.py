"""A part of a predicate that cannot fail, for what stands around it or for its types, is not told."""

from __future__ import annotations

import time

import pytest

from support.columns import TYPES
from tidemill.core.contract.failing_calls import failing_calls
from tidemill.core.contract.run_time_faults import possible_faults


@pytest.mark.parametrize(
    "predicate",
    [
        "count / nullif(small, 0) > 1",
        "count % (nullif(small, 0.0)) > 1",
        "small div nullif(count, 0) > 1",
        "count / -nullif(small, 0) > 1",
        "count / coalesce(nullif(small, 0), 1) > 1",
        "count / greatest(small, 1) > 1",
        "count div greatest(1, small) > 1",
        "case when small <> 0 then count / small > 1 end",
        "case when SMALL != 0 and flag then count / small > 1 end",
        "case when flag then true when small = 0 then null else count / small > 1 end",
        "case small when 0 then true else count / small > 1 end",
        "case when 0 < small then count / small > 1 end",
        "case when not (small = 0 or flag) then count / small > 1 end",
        "case when small = 0 then true when count / small > 1 then false end",
        "if(small = 0, null, count / small) > 1",
        "if(small = 0 or flag, null, coalesce(count / small, 1)) > 1",
        "if(size(tags) > 0, tags[0] = 'a', true)",
        "if(size(tags) >= 3, tags[2] = 'a', true)",
        "if(array_size(tags) = 0, true, element_at(tags, 1) = 'a')",
        "if(small > 0, mod(count, small) = 1, true)",
        "to_date(ts) = day",
        "to_date(day) = day",
        "to_timestamp(ts) = ts",
        "to_timestamp(day) = ts",
        "cast(note as binary) = bytes",
        "binary(note) = bytes",
        "cast(flag as decimal(5, 0)) = 1",
        "cast(flag as decimal) = 1",
        "cast(day as timestamp) = ts",
        "timestamp(day) = ts",
        "make_date(2020, 1, 1) = day",
        "to_date('2020-01-01') = day",
        "unix_timestamp(ts) = count",
        "unbase64('YWI=') = bytes",
        "make_timestamp(2020, 1, 1, 0, 0, 0) = ts",
    ],
)
def test_what_is_guarded_is_not_told(predicate: str) -> None:
    assert possible_faults(predicate, TYPES) == ()
    assert failing_calls(predicate, TYPES) == frozenset()


@pytest.mark.parametrize(
    ("predicate", "name"),
    [
        ("count / nullif(small, 1) > 1", "/"),
        ("count / nullif(0, small) > 1", "/"),
        ("count / greatest(small, 0) > 1", "/"),
        ("count div nullif(small, 0) > 1", "div"),
        ("case when small <> 0 then true else count / small > 1 end", "/"),
        ("case when small <> 0 or flag then count / small > 1 end", "/"),
        ("case when small >= 0 then count / small > 1 end", "/"),
        ("case when count / small > 1 then small = 0 end", "/"),
        ("if(small = 0, count / small, null) > 1", "/"),
        ("if(small = 0, null, small / count) > 1", "/"),
        ("if(small <> 0, exists(array(0), small -> 1 / small > 1), true)", "/"),
        ("if(size(tags) > 0, tags[1] = 'a', true)", "[]"),
        ("if(size(tags) > 0, true, tags[0] = 'a')", "[]"),
        ("if(size(tags) > 0, tags[small] = 'a', true)", "[]"),
        ("to_date(note) = day", "to_date"),
        ("make_date(2020, 2, 30) = day", "make_date"),
        ("to_date('2020-02-30') = day", "to_date"),
        ("cast(flag as decimal(2, 2)) = 1", "cast"),
    ],
)
def test_what_is_no_guard_is_told(predicate: str, name: str) -> None:
    assert {fault.sign for fault in possible_faults(predicate, TYPES)} | failing_calls(predicate, TYPES) == {name}


def test_a_long_predicate_is_looked_at_in_a_moment() -> None:
    begin = time.process_time()
    assert possible_faults(f"{' + '.join(['count / nullif(small, 0)'] * 700)} > 0", TYPES) == ()
    assert time.process_time() - begin < 5
