"""Failpoints: what is asked for happens at its boundary, on its side, in its batch, and nowhere else."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from support.builders import a_flow
from tidemill.core.errors import ConfigError
from tidemill.core.protocol.failpoints import (
    VARIABLE,
    Injected,
    LostAnswer,
    answered,
    boundaries_of,
    boundary,
    check_wanted,
)

BATCHES = (1, 2, 3, 12)


def passed(name: str, batch_id: int) -> list[str]:
    """What happens at a boundary whose write lands."""
    steps = []
    try:
        steps.append("before")
        with boundary(name, batch_id):
            steps.append("written")
            answered()
            steps.append("answered")
        steps.append("after")
    except Injected:
        steps.append("failed")
    except LostAnswer:
        steps.append("lost")
    return steps


WHOLE = ["before", "written", "answered", "after"]
FAILED_BEFORE, FAILED_AFTER = ["before", "failed"], ["before", "written", "answered", "failed"]


@pytest.mark.parametrize(
    ("asked", "batches"),
    [("here", BATCHES), ("here@2", (2,)), ("here@2+", (2, 3, 12)), ("there", ()), ("her", ()), ("after:here@1", (1,))],
)
def test_a_failpoint_fails_where_and_when_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked: str, batches: tuple[int, ...]
) -> None:
    monkeypatch.setenv(VARIABLE, f"{asked}=raise")
    assert [b for b in BATCHES if passed("here", b) == FAILED_AFTER] == list(batches)
    assert [b for b in BATCHES if passed("here", b) == WHOLE] == [b for b in BATCHES if b not in batches]


def test_a_name_with_colons_has_sides_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "before:published:sums=raise;late@2=raise")
    assert passed("published:sums", 1) == FAILED_BEFORE
    assert passed("late", 2) == FAILED_AFTER
    assert passed("late", 1) == passed("published", 1) == WHOLE


def test_an_answer_is_lost_once_after_the_write_has_landed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = f"here {tmp_path.name}"
    monkeypatch.setenv(VARIABLE, f"{name}=lose")
    assert passed(name, 1) == ["before", "written", "lost"]
    assert passed(name, 1) == passed("there", 1) == WHOLE
    answered()


def test_a_pause_ends_when_its_file_appears(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    go = tmp_path / "go"
    monkeypatch.setenv(VARIABLE, f"before:here=pause:{go}")
    steps: list[str] = []
    waiting = threading.Thread(target=lambda: steps.extend(passed("here", 1)))
    waiting.start()
    reached = tmp_path / "go.reached"
    while not reached.exists():
        waiting.join(0.01)
    assert steps == []
    go.touch()
    waiting.join()
    assert steps == WHOLE


@pytest.mark.parametrize("text", ["here", "here=", "here=explode", "here@x=raise", "here@=raise+", "=raise@"])
def test_what_cannot_be_understood_is_said_with_what_was_expected(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ConfigError, match=re.escape("expected [before:|after:]NAME")), boundary("here", 1):
        pass


def test_an_unset_variable_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert passed("here", 1) == WHOLE


def test_every_boundary_of_a_pipeline_is_listed_once() -> None:
    names = [b.name for b in boundaries_of(a_flow())]
    assert len(set(names)) == len(names)
    assert {"planned", "records:counts", "panes:counts", "state:counts", "published:counts", "committed"} <= {*names}


@pytest.mark.parametrize("text", ["comitted=kill", "published:other=raise", "bounds=lose", "planned=raise;scan=lose"])
def test_a_failure_that_could_never_happen_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ConfigError, match="p has no boundary"):
        check_wanted(a_flow())


@pytest.mark.parametrize("text", ["committed=kill", "before:bounds@3+=raise", "published:counts=lose", ""])
def test_a_failure_that_can_happen_is_accepted(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    check_wanted(a_flow())
