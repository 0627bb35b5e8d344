"""What windows that accumulate keep: few rows, from which every firing is added up as if all pieces were there."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tidemill.core.errors import EngineError
from tidemill.engine.publish.kept_pieces import FEW_WHOLE, needed, nodes_of
from tidemill.engine.publish.piece_tree import PieceTree, node_ids
from tidemill.engine.publish.pieces import PieceIndex

BASE = 5 << 31
SCHEMA = pa.schema([("user", pa.string()), ("piece_id", pa.int64()), ("sum", pa.string())])
Runs = list[tuple[int, int]]


def a_sink(*, wholes: bool = True) -> Any:
    return SimpleNamespace(table="t", keys=("user",), keeps_wholes=wholes)


def merged(rows: pa.Table) -> pa.Table:
    """One row for each key and piece, which tells what was added to what."""
    found: dict[tuple[str, int], list[str]] = {}
    for row in rows.to_pylist():
        found.setdefault((row["user"], row["piece_id"]), []).append(row["sum"])
    made = [{"user": u, "piece_id": p, "sum": f"({'+'.join(s)})" if s[1:] else s[0]} for (u, p), s in found.items()]
    return pa.Table.from_pylist(random.Random(len(made)).sample(made, len(made)), SCHEMA)


def pieces(ids: range, user: str = "a") -> pa.Table:
    return pa.Table.from_pylist([{"user": user, "piece_id": n, "sum": str(n - BASE)} for n in ids], SCHEMA)


def kept(whole: dict[str, Runs], alone: dict[str, Runs] | None = None) -> pa.Table:
    told = {user: {"alone": (alone or {}).get(user, []), "whole": runs} for user, runs in whole.items()}
    return pa.table({"user": list(told), "_kept": [json.dumps(each) for each in told.values()]})


def summed(rows: pa.Table, user: str, first: int, last: int) -> list[str]:
    """How this run is added up from these rows."""
    index = PieceIndex.of("t", rows, pa.table({"user": [user]}), ("user",))
    tree = PieceTree.of(rows, index, [(0, first, last)], FEW_WHOLE, merged)
    return tree.rows["sum"].take(pa.array(tree.rows_of([(0, first, last)]).rows)).to_pylist()


@pytest.mark.parametrize("seed", range(6))
def test_any_firing_is_added_up_in_the_same_order_whatever_was_merged_and_dropped(seed: int) -> None:
    draw = random.Random(seed)
    bases = {user: BASE + draw.choice([0, 1, 7, 1000]) for user in "ab"}
    state, ends = SCHEMA.empty_table(), dict(bases)
    for _ in range(40):
        new = {user: range(ends[user], ends[user] + draw.choice([0, 1, 1, 2, 9])) for user in "ab"}
        before, ends = ends, {user: ids.stop for user, ids in new.items()}
        own = pa.concat_tables([pieces(ids, user) for user, ids in new.items()])
        # The firing before may have to be taken back.
        firings = {user: [end for end in (ends[user], before[user]) if end > bases[user]] for user in "ab"}
        runs = {user: [(bases[user], end - 1) for end in found] for user, found in firings.items()}
        keys = kept(runs)
        every = pa.concat_tables([state, own])
        nodes = nodes_of(a_sink(), keys, every, merged)
        own = needed(a_sink(), keys, pa.concat_tables([own, nodes]), beside=state)
        state = pa.concat_tables([state, own])
        if draw.random() < 0.3:
            state = needed(a_sink(), keys, state)
            assert state.num_rows <= len(runs) * 4 * 9
        for user, parts in runs.items():
            for first, last in parts:
                every = pieces(range(first, last + 1), user)
                assert summed(state, user, first, last) == summed(every, user, first, last)


def test_a_year_of_minutes_is_a_few_rows() -> None:
    many = 525_600
    nodes = [((many >> level) - 1, level) for level in range(20) if many >> level & 1]
    ids = [int(node_ids(level, BASE // (1 << level) + node)) for node, level in nodes]
    rows = pa.table({"user": ["a"] * len(ids), "piece_id": ids, "sum": [""] * len(ids)}, SCHEMA)
    keys = kept({"a": [(BASE, BASE + many - 1)]})
    assert nodes_of(a_sink(), keys, rows, merged).num_rows == 0
    assert needed(a_sink(), keys, rows).num_rows == len(ids) == 4
    more = pa.concat_tables([rows, pieces(range(BASE + many, BASE + many + 1))])
    assert needed(a_sink(), kept({"a": [(BASE, BASE + many)]}), more).num_rows == 5


def test_pieces_that_are_needed_alone_stay_beside_what_was_merged_of_them() -> None:
    rows = pieces(range(BASE, BASE + 16))
    run = (BASE, BASE + 15)
    every = pa.concat_tables([rows, nodes_of(a_sink(), kept({"a": [run]}), rows, merged)])
    assert needed(a_sink(), kept({"a": [run]}), every)["piece_id"].to_pylist() == [-(BASE + 8)]
    found = needed(a_sink(), kept({"a": [run]}, {"a": [(BASE + 3, BASE + 3)]}), every)
    assert sorted(found["piece_id"].to_pylist()) == [-(BASE + 8), BASE + 3]
    assert needed(a_sink(), kept({"a": [], "b": [run]}), every).num_rows == 0
    assert needed(a_sink(wholes=False), kept({"a": [run]}), rows).num_rows == 16


def test_what_older_versions_kept_names_every_piece() -> None:
    rows = pa.concat_tables([pieces(range(BASE, BASE + 16)), pieces(range(BASE, BASE + 16), "b")])
    nodes = nodes_of(a_sink(), kept({"b": [(BASE, BASE + 15)]}), rows, merged)
    older = pa.table({"user": ["a"], "_kept": [json.dumps({"alive": [[BASE, BASE + 14]]})]})
    keys = pa.concat_tables([older, kept({"b": [(BASE, BASE + 15)]})])
    found = needed(a_sink(), keys, pa.concat_tables([rows, nodes]))
    assert sorted(zip(found["user"].to_pylist(), found["piece_id"].to_pylist(), strict=True)) == [
        *[("a", BASE + n) for n in range(15)],
        ("b", -(BASE + 8)),
    ]


def test_a_piece_that_is_not_there_is_an_error_that_says_what_to_do() -> None:
    rows = pieces(range(BASE, BASE + 30)).filter(pa.array([n != 20 for n in range(30)]))
    with pytest.raises(EngineError) as caught:
        nodes_of(a_sink(), kept({"a": [(BASE, BASE + 29)]}), rows, merged)
    assert "state of t has 29 of 30 rows" in str(caught.value)
    assert "tidemill rebuild" in str(caught.value)
