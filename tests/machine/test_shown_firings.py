"""What commands show of a table of firings, on the tiny engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from machine.tiny import TinyAttempt
from support.firings import firings
from support.projects import NO_SPARK, NOW, an_event
from tidemill.cli.main import main
from tidemill.inspect.state_size import state_sizes
from tidemill.run import batch


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)
    return


def shown(folder: Path, capsys: pytest.CaptureFixture[str], *command: str) -> tuple[object, str]:
    """The exit code of a command, and what it says, with single spaces."""
    with pytest.raises(SystemExit) as ended:
        main(["--project", str(folder), *command])
    told = capsys.readouterr()
    return ended.value.code, " ".join((told.out + told.err).split())


def test_status_tells_the_size_of_state_of_firings(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(3))", collect=False)
    mill.feed([an_event(0, "a", 1), an_event(1, "b", 1)])
    commit = mill.run()
    [size] = state_sizes(mill.project, mill.project.pipeline("firings"), commit.position)
    assert (size.table, size.rows, size.oldest_open) == ("firings", 4, None)
    assert size.bytes > 0


def test_explain_tells_evictors_and_how_firings_relate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = 'trigger=Repeatedly(AfterCount(2)), accumulation="discarding", index="nth", empty_on_time=False'
    firings(tmp_path, NO_SPARK, "Tumbling('10 s'), evictor=CountEvictor(7)", trigger=told, bounds=True)
    code, text = shown(tmp_path, capsys, "explain", "firings", "--json")
    assert code == 0
    for part in ("keep the last 7", "discarding", "index in column nth", "not on time without new records"):
        assert part in text


def test_a_buffer_has_no_lateness_to_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(3))")
    _, text = shown(tmp_path, capsys, "explain", "firings")
    assert "tumbling by count 3" in text
    assert "allowed lateness" not in text
    assert "published as" not in text


@pytest.mark.parametrize("named", [(), ("--table", "firings")])
def test_explain_of_a_window_says_where_to_look_for_firings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], named: tuple[str, ...]
) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(1))", collect=False)
    mill.feed([an_event(0, "a", 1)])
    mill.run()
    code, text = shown(tmp_path, capsys, "explain", "firings", "--window", NOW.isoformat(), *named)
    assert code == 5
    assert "firings has a row for each firing" in text
    assert "tidemill history firings --batch N" in text
