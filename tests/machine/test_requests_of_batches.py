"""What a batch asks its log: nothing twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.projects import Mill, an_event
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.stores.local import LocalStore


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the file log of this process has asked for what."""
    found = Counter[str]()

    def noted(method: str) -> Callable[..., Any]:
        real = getattr(LocalStore, method)

        def ask(store: LocalStore, name: str, *more: Any) -> Any:
            if "events" in name:
                found[f"{method} {Path(name).name}"] += 1
            return real(store, name, *more)

        return ask

    for method in ("read", "list", "tail"):
        monkeypatch.setattr(LocalStore, method, noted(method))
    return found


def test_batch_asks_the_log_for_each_thing_once(a_mill: Callable[..., Mill], asked: Counter[str]) -> None:
    mill = a_mill(partitions=2)
    for partition in range(2):
        mill.feed([an_event(1), an_event(2)], partition=partition)
    mill.run()
    for partition in range(2):
        mill.feed([an_event(31)] * 3, partition=partition)
    asked.clear()
    assert mill.run().accounts["events"].read == 6
    assert asked == {
        "read topic.json": 1,
        "list 0": 1,
        "list 1": 1,
        "tail 00000000000000000002.parquet": 2,
    }


def test_batch_of_another_process_is_read_as_it_was_planned_and_each_thing_asked_for_once(
    a_mill: Callable[..., Mill], asked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = a_mill(partitions=1)
    mill.feed([an_event(1), an_event(2)])
    monkeypatch.setenv(VARIABLE, "after:planned=raise")
    with pytest.raises(Injected):
        mill.run()
    monkeypatch.delenv(VARIABLE)
    mill.feed([an_event(3)])
    asked.clear()
    assert mill.run().accounts["events"].read == 2
    assert mill.run().accounts["events"].read == 1
    assert max(asked.values()) == 2, "once for each of the two batches"
