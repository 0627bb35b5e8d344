"""Records that are let in later count where they lie in the log: on the engine, each way to read and to write."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from support.projects import NO_SPARK, NOW, write_settings
from support.replayed_keys import (
    KINDS,
    PAIRS,
    a_mill,
    drawn,
    fed,
    let_in,
    let_in_later,
    never_rejected,
    of_three_tables,
    widen,
)
from support.short_forms import shortened
from tidemill.inspect.verify import Scope, verify

pytestmark = pytest.mark.spark

WAYS: dict[str, dict[str, Any]] = {
    "here": {},
    "workers": {"driver_records": 0},
    "spark": {"aggregate": "spark", "writer": "spark"},
}
CASES = [(kind, way, seed, 8 if seed > 1 else 4) for kind in KINDS for way in WAYS for seed in range(6)]
SHORT = [
    ("tumbling", "here", 2, 8),
    ("of all", "here", 2, 8),
]


@pytest.mark.parametrize(("kind", "way", "seed", "batches"), shortened(CASES, SHORT))
def test_in_the_end_all_is_as_if_no_record_had_been_rejected(  # noqa: PLR0917
    tmp_path: Path, spark: Any, kind: str, way: str, seed: int, batches: int
) -> None:
    make = partial(a_mill, kind=kind, collect=way != "here", **WAYS[way])
    session, story = NO_SPARK if way == "here" else spark, drawn(seed, batches=batches)
    expected = never_rejected(make(tmp_path / "expected", session), story)
    mill = let_in_later(make(tmp_path / "mill", session), story)
    assert mill.own("quarantine") == []
    assert mill.published() == expected.published()
    for number, batch in enumerate(drawn(seed + 1_000, batches=4).batches[: batches // 2], start=20):
        for each in (mill, expected):
            fed(each, batch, number)
    for each in (mill, expected):
        each.run(drain=True, clock=NOW + timedelta(minutes=30))
    assert mill.published() == expected.published()
    if way != "here":
        [verified] = verify(an_amendment(mill), Scope())
        assert verified.agrees, verified.differences


@pytest.mark.parametrize("way", ["workers", pytest.param("spark", marks=pytest.mark.long)])
def test_several_tables_of_a_pipeline_read_the_log_again_once(tmp_path: Path, spark: Any, way: str) -> None:
    mill = of_three_tables(tmp_path, spark)
    write_settings(tmp_path, **WAYS[way])
    let_in(widen(mill))
    assert {row["amount"] for row in mill.published() if row["user"] is None} == {7, 2_000_001}
    assert sorted(row["amount"] for row in mill.published("pairs") if row["user"] is None) == sorted(PAIRS)
    assert [row["amount"] for row in mill.published("minutes") if row["user"] is None] == [2_000_013]
    if way == "workers":
        assert all(each.agrees for each in verify(an_amendment(widen(mill)), Scope()))
