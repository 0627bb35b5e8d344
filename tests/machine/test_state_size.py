"""What `status` says of state: rows, bytes, and the oldest window that still takes records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from support.commands import type_command
from support.projects import NO_SPARK, NOW, Mill, an_event
from tidemill.core.time.times import micros
from tidemill.inspect.state_size import state_sizes

SECOND = 1_000_000


def sized(mill: Mill) -> tuple[int, int, int | None]:
    """Rows, bytes, and seconds after the start of the tests' time."""
    flow, view = mill.project.pipeline("sums"), mill.project.ledger("sums").view()
    [found] = state_sizes(mill.project, flow, view.position)
    assert found.table == "sums"
    oldest = None if found.oldest_open is None else (found.oldest_open - micros(NOW)) // SECOND
    return found.rows, found.bytes, oldest


def test_the_oldest_open_window_is_the_first_that_still_takes_records(a_mill: Callable[..., Mill]) -> None:
    mill = Mill(a_mill().project, NO_SPARK, "sums")  # windows of 10 s, 10 s of lateness
    assert sized(mill) == (0, 0, None)
    mill.feed([an_event(1), an_event(1, "b")])
    mill.run()
    assert sized(mill)[::2] == (2, 0)
    mill.feed([an_event(19)])
    mill.run()
    assert sized(mill)[::2] == (3, 0), "its end and the lateness: 20"
    mill.feed([an_event(20), an_event(35)])
    mill.run()
    rows, size, oldest = sized(mill)
    state = Path(mill.project.table_uri("sums", "state", "sums"))
    assert (rows, oldest) == (5, 20)
    assert size == sum(file.stat().st_size for file in state.rglob("part-*.parquet"))
    mill.run(drain=True)
    assert sized(mill)[::2] == (5, None)


def test_people_and_scripts_are_told_the_size_of_state(a_mill: Callable[..., Mill]) -> None:
    mill = Mill(a_mill().project, NO_SPARK, "sums")
    mill.feed([an_event(1)])
    mill.run()
    folder = mill.project.folder
    [state] = type_command(folder, "status", "sums", "--json").json["state"]
    assert (state["table"], state["rows"], state["oldest_open_window"]) == ("sums", 1, "2026-01-01T00:00:00+00:00")
    assert (
        f"sums: 1 row, {state['bytes']:,} bytes; oldest open window 2026-01-01"
        in type_command(folder, "status", "sums").out
    )
