"""What keys keep in the course of a batch, against plain dicts."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tidemill.core.ordered.records import Moment
from tidemill.engine.publish.ordered_keys import OrderedKeys
from tidemill.engine.publish.ordered_state import CLOCK, LOOKS, NEVER, SINCE, WATERMARK, Kept, state_rows

USERS = [*"abcdefgh", None]
Told = dict[Any, Any]


def a_sink(timeout: int | None = None) -> Any:
    return SimpleNamespace(table="t", keys=("user",), aggregates={}, timeout=timeout)


def drawn(draw: random.Random) -> Told:
    """What some keys keep; None for those that keep nothing any more."""
    found: Told = {}
    for user in draw.sample(USERS, draw.randint(0, len(USERS))):
        wake = [draw.choice([None, draw.randint(0, 20)]) for _ in range(2)]
        state = {"machine": "m", "n": draw.randint(0, 9), **draw.choice([{}, {"used": draw.randint(0, 20)}])}
        told = {"state": state, "wake": wake, "lost": draw.randint(0, 3), "since": draw.choice([None, 7, 8])}
        told |= draw.choice([{}, {"last": draw.randint(0, 5)}])
        found[user] = told if draw.random() < 0.7 else None
    return found


def text_of(told: dict[str, Any] | None) -> str:
    return json.dumps(told or {"state": None, "wake": [None, None], "lost": 0}, separators=(",", ":"))


def folded(told: Told) -> pa.Table:
    """As a fold gives it, with rows of other kinds between."""
    rows = [{"_row": 1, "user": user, "_told": text_of(each)} for user, each in told.items()]
    others = [{"_row": kind, "user": "a", "_told": "{}"} for kind in (0, 2)]
    schema = pa.schema([("_row", pa.int32()), ("user", pa.string()), ("_told", pa.string())])
    return pa.Table.from_pylist([others[0], *rows, others[1]], schema)


def in_state(sink: Any, keys: pa.Table) -> pa.Table:
    """Rows of state that say it."""
    rows = state_rows(sink, keys, None)
    rows = rows if rows is not None else keys.rename_columns(["user", "key_as_of", *LOOKS, "key_state"])
    return rows.append_column("piece_id", pa.nulls(rows.num_rows, pa.int64()))


def as_dict(keys: pa.Table) -> Told:
    rows = keys.to_pylist()
    assert len({row["user"] for row in rows}) == len(rows)
    return {row["user"]: row["_kept"] and json.loads(row["_kept"]) for row in rows}


def wakes(told: dict[str, Any], after: Moment, timeout: int | None) -> bool:
    at = [wake is not None and wake <= now for wake, now in zip(told["wake"], after, strict=True)]
    if timeout is not None:
        used = told["state"].get("used")
        at.append(used is None or used + timeout < after.clock)
    return any(at)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("older", [False, True])
def test_a_batch_knows_of_all_keys_what_it_would_know_had_it_looked_at_each(seed: int, older: bool) -> None:
    draw = random.Random(seed)
    sink, parts = a_sink(draw.choice([None, 3])), [drawn(draw) for _ in range(4)]
    first = OrderedKeys.of(sink, None, [folded(part) for part in parts[:2]], 10)
    assert first is not None
    state = in_state(sink, first.folded)
    if older:
        state = state.drop_columns(list(LOOKS))
    keys = OrderedKeys.of(sink, Kept.of(sink, state), [folded(parts[2])], 20)
    assert keys is not None
    keys = keys.then(OrderedKeys.of(sink, None, [folded(parts[3])], 21).folded)  # type: ignore[union-attr]
    before, now = {**parts[0], **parts[1]}, {**parts[2], **parts[3]}
    everything = {user: told for user, told in {**before, **now}.items() if told is not None}
    assert as_dict(keys.everything()) == everything
    assert as_dict(keys.folded) == now
    assert as_dict(keys.told()) == {u: told for u, told in now.items() if told is not None or u in before}
    for column, values in (
        (CLOCK, [told["wake"][1] for told in everything.values()]),
        (SINCE, [told["since"] for told in everything.values()]),
    ):
        assert keys.earliest(column) == min((v for v in values if v is not None), default=None)
    for after in (Moment(4, 18), Moment(18, 4), Moment(0, 0), Moment(20, 20)):
        woken = {user: told for user, told in everything.items() if wakes(told, after, sink.timeout)}
        assert as_dict(keys.woken(after)) == woken
    for most in (None, 0, 1, 3, 9):
        less = keys.at_most(most, 22)
        oldest = sorted(everything, key=lambda u: (everything[u].get("last", -1), u is not None, u or ""))
        gone = set(oldest[: max(0, len(oldest) - (len(oldest) if most is None else most))])
        assert as_dict(less.everything()) == {u: told for u, told in everything.items() if u not in gone}
        assert as_dict(less.told()).keys() == as_dict(keys.told()).keys() - (gone - before.keys()) | (
            gone & before.keys()
        )


def test_no_watermark_to_wait_for_is_no_null_because_null_is_of_older_versions() -> None:
    told = {"state": {"machine": "m"}, "wake": [None, 3], "since": 2}
    keys = OrderedKeys.of(a_sink(), None, [folded({"a": told})], 10)
    assert keys is not None
    assert keys.folded[WATERMARK].to_pylist() == [NEVER]
    assert OrderedKeys.of(a_sink(), None, [], 10) is None
