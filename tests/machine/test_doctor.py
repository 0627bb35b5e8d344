"""`tidemill doctor` of a pipeline with batches: each fault stands in a row that names what is broken."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from support.commands import type_command
from support.damage import Folder, lose, lose_entries, published, quarantine, state
from support.projects import Mill, an_event
from tidemill.core.errors import DeclarationError, EngineError


class Session:
    """A session of Spark that does nothing, and knows whether it was stopped."""

    version, stopped = "4", False

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def mill(a_mill: Callable[..., Mill]) -> Mill:
    found = a_mill()
    found.feed([an_event(1), an_event(30), b"no JSON"])
    found.run()
    return found


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    found = Session()
    monkeypatch.setattr("tidemill.cli.spark.start_spark", lambda _: SimpleNamespace(session=found))
    monkeypatch.setattr("tidemill.engine.spark.workers.look", lambda _: ["a worker"])
    monkeypatch.setattr("tidemill.engine.aggregate.types.check_types", lambda *_: None)
    return found


def rows(mill: Mill, *words: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in type_command(mill.project.folder, "doctor", "--json", *words).lines}


def problems(found: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, row in found.items() if row["state"] == "problem"]


@pytest.mark.parametrize(
    ("table", "row"),
    [
        (published, "table sums of sums"),
        (state, "table state of sums of sums"),
        (quarantine, "table quarantine of sums"),
    ],
)
def test_a_table_that_is_damaged_or_gone_has_a_row_of_its_own(
    mill: Mill, session: Session, table: Folder, row: str
) -> None:
    lose_entries(0)(table(mill))
    found = rows(mill)
    assert problems(found) == [row]
    assert "tidemill rebuild sums" in found[row]["fix"]
    assert (found["spark"]["state"], "types of sums" in found) == ("ok", False)
    lose(table(mill))
    found = rows(mill, "--no-spark")
    assert problems(found) == [row]
    assert "is gone" in found[row]["found"]


def test_types_that_do_not_fit_are_no_fault_of_spark(
    mill: Mill, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = rows(mill)
    assert (problems(found), found["types of sums"]["state"], session.stopped) == ([], "ok", True)

    def refuse(*_: object) -> None:
        raise DeclarationError("pipeline.py:5: no", fix="another type")

    monkeypatch.setattr("tidemill.engine.aggregate.types.check_types", refuse)
    found = rows(mill)
    assert problems(found) == ["types of sums"]
    assert (found["types of sums"]["found"], found["types of sums"]["fix"]) == ("pipeline.py:5: no", "another type")


def test_without_spark_nothing_is_said_of_types(mill: Mill, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> None:
        raise EngineError("no workers")

    monkeypatch.setattr("tidemill.engine.spark.workers.look", fails)
    found = rows(mill)
    assert (problems(found), "types of sums" in found, session.stopped) == (["spark"], False, True)
