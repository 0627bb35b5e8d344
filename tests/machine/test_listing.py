"""What a batch asks a bucket of segments: names of new ones, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from support.projects import Mill, an_event
from tidemill.stores.local import LocalStore


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Lets a folder answer as a bucket does, and notes after which offset names are asked, and how many there are."""
    found: list[tuple[str, int]] = []
    original = LocalStore.list

    def noted(store: LocalStore, folder: str, after: str = "") -> Sequence[str]:
        names = [name for name in original(store, folder, after) if name > after]
        if any(name.endswith(".parquet") for name in names) or after:
            found.append((after.lstrip("0"), len(names)))
        return names

    monkeypatch.setattr(LocalStore, "list", noted)
    return found


def test_a_batch_asks_for_the_names_of_new_segments(a_mill: Callable[..., Mill], listed: list[tuple[str, int]]) -> None:
    mill = a_mill()
    for number in range(4):
        mill.feed([an_event(2 * number), an_event(2 * number + 1, "b")])
        listed.clear()
        mill.run()
        assert listed == [("", 1) if number == 0 else (str(2 * number), 1)]


def test_a_batch_that_goes_on_within_a_segment_asks_for_all(
    a_mill: Callable[..., Mill], listed: list[tuple[str, int]]
) -> None:
    mill = a_mill()
    mill.feed([an_event(1), an_event(2), an_event(3)])
    mill.feed([an_event(4), an_event(5)])
    mill.run(limit=2)
    listed.clear()
    mill.run(limit=1)
    assert listed == [("2", 1), ("", 2)]
    listed.clear()
    mill.run()
    assert listed == [("3", 1)]
