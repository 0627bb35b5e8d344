"""Buffers of records in their order on Spark: count, delta, punctuation and time, tumbling and sliding."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from support.firings import feed, fired, firings
from support.projects import NOW, Mill, an_event
from support.writers import WRITERS
from tidemill.inspect.verify import Scope, verify

pytestmark = pytest.mark.spark

COUNT_5 = "TumblingBuffer(CountPolicy(5))"


def checked(mill: Mill) -> None:
    [found] = verify(an_amendment(mill), Scope())
    assert (found.differences.count, found.differences.compared) == (0, len(mill.published())), found.differences


@pytest.mark.parametrize(
    ("window", "cuts", "expected"),
    [
        (COUNT_5, [4, 8, 12], [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]),
        pytest.param(
            "TumblingBuffer(DeltaPolicy('amount', 2))",
            [12],
            [[0, 1, 2], [3, 4, 5], [6, 7, 8]],
            marks=pytest.mark.long,
        ),
        ("SlidingBuffer(TimePolicy('2 s'))", [1, 2, 4], [[0], [0, 1], [0, 1, 2], [1, 2, 3]]),
        pytest.param(
            "SlidingBuffer(CountPolicy(5), CountPolicy(4))",
            [1, 2, 3, 5, 6, 11, 12],
            [[0, 1, 2, 3], [3, 4, 5, 6, 7], [7, 8, 9, 10, 11]],
            marks=pytest.mark.long,
        ),
    ],
)
def test_rows_23_to_27_firings_of_buffers_do_not_depend_on_how_batches_cut_the_log(
    tmp_path: Path, spark: Any, window: str, cuts: list[int], expected: list[list[int]]
) -> None:
    mill, at = firings(tmp_path, spark, window), 0
    for cut in cuts:
        feed(mill, list(range(at, cut)))
        mill.run()
        at = cut
    assert fired(mill) == {"a": expected}
    checked(mill)


def test_row_29_a_marker_ends_a_buffer_and_is_never_data(tmp_path: Path, spark: Any) -> None:
    mill = firings(tmp_path, spark, "TumblingBuffer(PunctuationPolicy('marker'))")
    for at, amounts in ((0, [1, 2]), (10, [-1, -1, 3, 4]), (20, [5])):
        mill.feed([an_event(at + number, "a", amount) for number, amount in enumerate(amounts)])
        mill.run()
    assert fired(mill) == {"a": [[], [1, 2]]}
    mill.catch_up()
    assert fired(mill) == {"a": [[], [1, 2], [3, 4, 5]]}
    checked(mill)


def test_row_28_windows_of_the_clock_are_those_of_the_plan_and_empty_ones_come_when_asked_for(
    tmp_path: Path, spark: Any
) -> None:
    mill = firings(
        tmp_path, spark, 'TumblingBuffer(TimePolicy("10 s", clock="batch_clock"), emit_empty=True)', bounds=True
    )
    for at, amounts in ((1, [1]), (4, [2]), (12, [3]), (30, [])):
        feed(mill, amounts)
        mill.run(clock=NOW + timedelta(seconds=at))
    rows = sorted(mill.published(), key=lambda row: row["window_end"])
    assert [((r["window_end"] - NOW).total_seconds(), r["n"], r["amounts"]) for r in rows] == [
        (10, 2, [1, 2]),
        (20, 1, [3]),
        (30, 0, []),
    ]
    checked(mill)


def test_windows_of_event_time_that_emit_empty_send_late_records_to_the_late_table(tmp_path: Path, spark: Any) -> None:
    mill = firings(tmp_path, spark, 'TumblingBuffer(TimePolicy("10 s"), emit_empty=True)', bounds=True)
    for amounts in ([1, 9, 31], [5, 35], [41]):
        feed(mill, amounts)
        mill.run()
    found = sorted((r["window_start"], r["amounts"]) for r in mill.published())
    assert [((start - NOW).total_seconds(), amounts) for start, amounts in found] == [
        (0, [1, 9]),
        (10, []),
        (20, []),
        (30, [31, 35]),
    ]
    assert [(r["table_name"], (r["window_start"] - NOW).total_seconds()) for r in mill.own("late")] == [("firings", 0)]
    checked(mill)


def test_a_record_without_a_value_to_compare_goes_to_the_late_table(tmp_path: Path, spark: Any) -> None:
    mill = firings(tmp_path, spark, "TumblingBuffer(DeltaPolicy('amount', 2))")
    mill.feed([an_event(0, "a", 1), an_event(1, "a", None), an_event(2, "a", 4)])
    commit = mill.run()
    assert fired(mill) == {"a": [[1]]}
    assert (commit.accounts["events"].aggregated, commit.accounts["events"].late) == (2, 1)
    assert [(row["window_start"], row["window_end"]) for row in mill.own("late")] == [(None, None)]


@pytest.mark.parametrize("writer", WRITERS)
def test_keys_have_buffers_of_their_own_and_records_are_taken_by_partition_and_offset(
    tmp_path: Path, spark: Any, writer: str
) -> None:
    mill = firings(tmp_path, spark, "SlidingBuffer(CountPolicy(3))", partitions=2, writer=writer)
    feed(mill, [1, 2], "a", partition=1)
    feed(mill, [5, 6], "a", partition=0)
    feed(mill, [7], None, partition=0)
    mill.run()
    feed(mill, [8], "a", partition=1)
    mill.run()
    assert fired(mill) == {"a": [[1, 2, 6], [1, 5, 6], [5], [5, 6], [1, 2, 8]], "unknown": [[7]]}
    checked(mill)


def test_without_keys_there_is_one_buffer_for_all_records(tmp_path: Path, spark: Any) -> None:
    mill = firings(tmp_path, spark, COUNT_5, keyed=False)
    feed(mill, [1, 2, 3], "a")
    mill.run()
    feed(mill, [4, 5, 6], "b")
    mill.run()
    assert fired(mill) == {None: [[1, 2, 3, 4, 5]]}
    checked(mill)
