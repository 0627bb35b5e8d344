"""Any history of upserts, appends and foldings gives what a dictionary would give."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow.compute as pc
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from tables.table_writers import PLAN, DeltaRsWriter, a_row, a_spec, append, at, batch, minutes, seen, upsert
from tidemill.tables.interface import Between
from tidemill.tables.rewrite import Picked

MINUTES = st.integers(0, 7)
KEYS = st.tuples(MINUTES, st.sampled_from(["/a", "/b", None]))
ROWS = st.dictionaries(KEYS, st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=8)
UPSERT = st.tuples(st.just("upsert"), ROWS, st.booleans())
FOLD = st.tuples(st.just("fold"), st.tuples(MINUTES, MINUTES), st.integers(1, 10_000))
WRITER = DeltaRsWriter()


def _rows(content: dict) -> list[dict]:
    return [a_row(minute, page, views) for (minute, page), views in content.items()]


def _hull(content: dict, *, tight: bool) -> Between:
    starts = [minute for minute, _ in content]
    return minutes(min(starts), max(starts) + 1) if tight and starts else minutes(None, None)


@settings(max_examples=30)
@given(steps=st.lists(st.one_of(UPSERT, FOLD), max_size=8))
def test_a_table_holds_what_a_dictionary_would(steps: list) -> None:
    model: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        table = WRITER.table(a_spec(Path(folder)))
        for number, (kind, what, how) in enumerate(steps):
            if kind == "fold":
                low, high = sorted(what)
                table.compact(Between(column="window_start", low=at(low), high=at(high)), target_size=how)
            else:
                model |= what
                upsert(table, WRITER, _rows(what), number, within=_hull(what, tight=how))
        expected = [(minute, page, views) for (minute, page), views in model.items()]
        assert seen(table, WRITER) == sorted(expected, key=lambda row: [(value is None, value) for value in row])


@settings(max_examples=30)
@given(
    commits=st.lists(st.lists(KEYS, max_size=5), max_size=6), bounds=st.tuples(st.none() | MINUTES, st.none() | MINUTES)
)
def test_a_bounded_read_is_a_filtered_whole_read(commits: list, bounds: tuple) -> None:
    low, high = bounds
    with tempfile.TemporaryDirectory() as folder:
        table = WRITER.table(a_spec(Path(folder)))
        for number, keys in enumerate(commits):
            append(table, WRITER, [a_row(minute, page) for minute, page in keys], number)
        wanted = [
            row for row in seen(table, WRITER) if (low is None or low <= row[0]) and (high is None or row[0] < high)
        ]
        assert seen(table, WRITER, where=(minutes(low, high),)) == wanted


@settings(max_examples=30)
@given(
    commits=st.lists(st.lists(KEYS, min_size=1, max_size=5), min_size=1, max_size=4),
    page=st.sampled_from(["/a", "/b", "/c"]),
    low=MINUTES,
    new=st.lists(KEYS, max_size=3),
)
def test_of_the_rows_within_bounds_only_some_may_be_replaced(commits: list, page: str, low: int, new: list) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = WRITER.table(a_spec(Path(folder)))
        for number, keys in enumerate(commits):
            append(table, WRITER, [a_row(minute, page) for minute, page in keys], number)
        before, files = seen(table, WRITER), set(DeltaTable(table.spec.uri).file_uris())
        only = Picked(("page",), lambda rows: pc.fill_null(pc.equal(rows["page"], page), False).to_numpy())
        rows = WRITER.rows([a_row(minute, "/new") for minute, _ in new])
        within = (minutes(low, None),)
        table.replace(rows, within=within, transaction=batch(len(commits)), plan_hash=PLAN, only=only)
        stay = [row for row in before if not (row[0] >= low and row[1] == page)]
        found = seen(table, WRITER)
        assert sorted(map(str, found)) == sorted([*map(str, stay), *(str((float(m), "/new", 1)) for m, _ in new)])
        touched = sum(any(minute >= low and at_page == page for minute, at_page in keys) for keys in commits)
        assert len(files - set(DeltaTable(table.spec.uri).file_uris())) == touched
