"""Rows of state are joined into sessions as the plain rule joins their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.time.panes import Window
from tidemill.core.time.sessions import merged
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.engine.storage.chains import END as UNTIL
from tidemill.engine.storage.chains import START, Chain, Chained

EVERY = Chain(
    keys=("user", "shop"),
    before=BEGINNING,
    after=END,
    refused_until=BEGINNING,
    again_until=BEGINNING,
    published_until=END,
    whole_after=BEGINNING,
    open_from=END,
)

Row = tuple[str | None, int, int, int, bool]
"""User, shop, first time, length, and whether this batch brought it."""

users, shops, times = st.sampled_from(["a", "b", None]), st.integers(0, 1), st.integers(-30, 30)
rows = st.lists(st.tuples(users, shops, times, st.integers(1, 9), st.booleans()), max_size=24)


def table(found: Sequence[Row]) -> pa.Table:
    moment = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "user": pa.array([r[0] for r in found], pa.string()),
            "shop": pa.array([r[1] for r in found], pa.int64()),
            "pane_start": pa.array([r[2] for r in found], pa.int64()).cast(moment),
            "pane_end": pa.array([r[2] + r[3] for r in found], pa.int64()).cast(moment),
            "_touched": pa.array([r[4] for r in found], pa.bool_()),
            "n": pa.array(range(len(found)), pa.int64()),
        }
    )


def joined(chain: Chain, found: Sequence[Row]) -> Chained[pa.Table]:
    return chain.apart(chain.over(table(found)))


def sessions(found: Sequence[Row], *, old: bool = False) -> dict[tuple[Any, int], list[Window]]:
    """The sessions of each key by the plain rule; with `old`, of rows of earlier batches alone."""
    kept = [r for r in found if not (old and r[4])]
    keys = {(r[0], r[1]) for r in kept}
    return {key: list(merged(Window(r[2], r[2] + r[3]) for r in kept if (r[0], r[1]) == key)) for key in keys}


def of(found: Sequence[Row], key: tuple[Any, int], time: int) -> Window:
    return next(w for w in sessions(found)[key] if time in w)


@given(rows)
def test_every_row_gets_the_bounds_of_its_session(found: list[Row]) -> None:
    for row in joined(EVERY, found).fires[0].to_pylist():
        expected = of(found, (row["user"], row["shop"]), found[row["n"]][2])
        assert (row[START], row[UNTIL]) == (expected.start, expected.end)
    assert joined(EVERY, found).fires[1] == len(found)


@given(rows, st.integers(-30, 40), st.integers(0, 10), st.integers(-40, 40))
def test_sessions_fire_when_they_end_and_again_when_they_are_touched(
    found: list[Row], before: int, step: int, whole: int
) -> None:
    chain = replace(EVERY, before=before, after=before + step, again_until=before, whole_after=whole)
    fires = {row["n"] for row in joined(chain, found).fires[0].to_pylist()}
    for number, (user, shop, time, _, _) in enumerate(found):
        window = of(found, (user, shop), time)
        touched = any(r[4] for r in found if (r[0], r[1]) == (user, shop) and r[2] in window)
        on_time, again = before < window.end <= before + step, window.end <= before and touched
        assert (number in fires) == ((on_time or again) and window.start > whole)


@given(rows, st.integers(-30, 40))
def test_published_sessions_that_merge_or_go_on_are_gone(found: list[Row], watermark: int) -> None:
    chain = replace(EVERY, before=watermark, after=watermark, again_until=watermark, published_until=watermark)
    gone = joined(chain, found).gone[0].to_pylist()
    stays = {key: {w.start for w in each if w.end <= watermark} for key, each in sessions(found).items()}
    expected = {
        (key, old.start)
        for key, each in sessions(found, old=True).items()
        for old in each
        if old.end <= watermark and old.start not in stays[key]
    }
    assert {((r["user"], r["shop"]), int(r[START].timestamp() * 1e6)) for r in gone} == expected
    assert len(gone) == len(expected)


@given(rows, st.integers(-30, 40))
def test_the_earliest_session_that_may_go_on_is_found(found: list[Row], open_from: int) -> None:
    starts = [w.start for each in sessions(found).values() for w in each if w.end >= open_from]
    assert joined(replace(EVERY, open_from=open_from), found).open_since == min(starts, default=None)


@given(rows)
def test_one_key_and_no_key_are_keys_like_others(found: list[Row]) -> None:
    for keys, kept in ((("user",), (0,)), (("shop",), (1,)), ((), ())):
        flat: list[Row] = [(r[0] if 0 in kept else None, r[1] if 1 in kept else 0, *r[2:]) for r in found]
        one = joined(replace(EVERY, keys=keys), found).fires[0].to_pylist()
        for row in one:
            expected = of(flat, (flat[row["n"]][0], flat[row["n"]][1]), flat[row["n"]][2])
            assert (row[START], row[UNTIL]) == (expected.start, expected.end)
