"""What a firing holds when the records of a key are in several partitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.firings import feed, firings
from support.projects import NO_SPARK, rows_of

pytestmark = pytest.mark.usefixtures("tiny")


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([{0: [1, 2], 1: [3, 4]}], [3, 7]),
        ([{0: [1], 1: [3]}, {0: [2], 1: [4]}], [4, 6]),
    ],
)
def test_the_order_between_partitions_is_that_in_which_batches_read_them(
    tmp_path: Path, batches: list[dict[int, list[int]]], expected: list[int]
) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2))", partitions=2, collect=False)
    for each in batches:
        for partition, amounts in each.items():
            feed(mill, amounts, partition=partition)
        mill.run()
    assert sorted(row["amount"] for row in rows_of(mill.project.published_uri("firings"))) == expected
