"""Why a row was published: the function and its SQL say the same."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.core.time.timing import Timing, timing_of_live, timing_sql
from tidemill.core.time.watermarks import BEGINNING, END

EDGES = (BEGINNING, -10, 0, 10, 20, END)


@pytest.mark.parametrize(
    ("end", "before", "after", "timing"),
    [(21, 10, 20, Timing.EARLY), (20, 10, 20, Timing.ON_TIME), (11, 10, 20, Timing.ON_TIME), (10, 10, 20, Timing.LATE)],
)
def test_a_window_is_on_time_in_the_batch_that_passes_its_end(
    end: int, before: int, after: int, timing: Timing
) -> None:
    assert timing_of_live(end, before, after) is timing


@pytest.mark.spark
def test_the_text_says_what_the_function_says(spark: Any) -> None:
    ends = range(-15, 26, 5)
    moves = [(before, after) for before in EDGES for after in EDGES if before <= after]
    columns = [f"{timing_sql('id', *move)} AS `{i}`" for i, move in enumerate(moves)]
    rows = spark.range(-15, 26, 5).selectExpr("id", *columns).orderBy("id").collect()
    found = {(row["id"], move): row[str(i)] for row in rows for i, move in enumerate(moves)}
    assert found == {(end, move): timing_of_live(end, *move).value for end in ends for move in moves}
