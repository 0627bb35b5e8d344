"""Runs of pieces merged from nodes hold exactly their pieces, whatever else is there."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tidemill.engine.publish.kept_pieces import FEW
from tidemill.engine.publish.piece_tree import PieceTree
from tidemill.engine.publish.pieces import PieceIndex

HUGE = 2**41


def merged(rows: pa.Table) -> pa.Table:
    """One row for each key and piece, in no order that anybody may rely on."""
    found: dict[tuple[str, int], list[int]] = {}
    for row in rows.to_pylist():
        found.setdefault((row["user"], row["piece_id"]), []).extend(row["held"])
    made = [{"held": sorted(held), "piece_id": piece, "user": user} for (user, piece), held in found.items()]
    return pa.Table.from_pylist(random.Random(len(made)).sample(made, len(made)), rows.schema)


TYPE = pa.list_(pa.int64())


@pytest.mark.parametrize("seed", range(12))
def test_runs_hold_exactly_their_pieces_in_order(seed: int) -> None:
    draw = random.Random(seed)
    base = draw.choice([0, 1, 63, HUGE, HUGE + 77])
    ids = {user: [base + n for n in range(draw.randint(1, 700))] for user in "abc"}
    pieces = [(user, piece) for user in ids for piece in ids[user]]
    draw.shuffle(pieces)
    users, numbers = zip(*pieces, strict=True)
    rows = pa.table(
        {"user": users, "piece_id": pa.array(numbers, pa.int64()), "held": pa.array([[n] for n in numbers], TYPE)}
    )
    fires = pa.table({"user": [draw.choice("abc") for _ in range(40)]})
    runs = []
    for owner, user in enumerate(fires["user"].to_pylist()):
        for _ in range(draw.randint(1, 2)):
            first = draw.randrange(len(ids[user]))
            runs.append((owner, ids[user][first], ids[user][draw.randrange(first, len(ids[user]))]))
    index = PieceIndex.of("t", rows, fires, ("user",))
    tree = PieceTree.of(rows, index, runs, FEW, merged)
    found = tree.rows_of(runs)
    held, users = tree.rows["held"].to_pylist(), tree.rows["user"].to_pylist()
    for owner, user in enumerate(fires["user"].to_pylist()):
        own = [row for row, of in zip(found.rows.tolist(), found.owners.tolist(), strict=True) if of == owner]
        assert {users[row] for row in own} == {user}
        wanted = [n for each, first, last in runs if each == owner for n in range(first, last + 1)]
        assert sorted(n for row in own for n in held[row]) == sorted(wanted)
        if sum(each == owner for each, *_ in runs) == 1:
            assert [n for row in own for n in held[row]] == wanted
    assert len(found.rows) <= sum(min(last - first + 1, FEW) for _, first, last in runs)


def test_short_runs_are_not_merged_ahead() -> None:
    rows = pa.table({"user": ["a"] * 99, "piece_id": range(99), "held": pa.array([[n] for n in range(99)], TYPE)})
    runs = [(0, 0, FEW - 1), (0, 98, 98)]
    index = PieceIndex.of("t", rows, pa.table({"user": ["a"]}), ("user",))
    tree = PieceTree.of(rows, index, runs, FEW, merged)
    assert (tree.rows.num_rows, len(tree.rows_of(runs).rows)) == (99, FEW + 1)
    assert tree.rows_of([]).rows.tolist() == []
    longer = PieceTree.of(rows, index, [(0, 0, FEW)], FEW, merged)
    assert len(longer.rows_of([(0, 0, FEW)]).rows) == 2
