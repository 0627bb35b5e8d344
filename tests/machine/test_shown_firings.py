"""What commands show of a table of firings, on the tiny engine."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from amend.conftest import an_amendment, done
from machine.failing import failing
from support.firings import firings
from support.projects import NO_SPARK, NOW, an_event, rows_of
from tidemill.cli.main import main
from tidemill.core.protocol.failpoints import Injected
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.time.times import micros
from tidemill.inspect.state_size import state_sizes
from tidemill.repair.backfill import backfill, resume
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.usefixtures("tiny")


def shown(folder: Path, capsys: pytest.CaptureFixture[str], *command: str) -> tuple[object, str]:
    """The exit code of a command, and what it says, with single spaces."""
    with pytest.raises(SystemExit) as ended:
        main(["--project", str(folder), *command])
    told = capsys.readouterr()
    return ended.value.code, " ".join((told.out + told.err).split())


RECORDS = ["TumblingBuffer(CountPolicy(3))", "RecordWindows('10 s')"]
TRIGGER = 'trigger=AfterWatermark(early=AfterCount(3)), accumulation="accumulating"'


GLOBAL = 'trigger=Repeatedly(AfterCount(3)), accumulation="accumulating"'


@pytest.mark.parametrize(
    ("window", "trigger", "oldest"),
    [
        ("TumblingBuffer(CountPolicy(3))", "", [None, None, None]),
        ("Global()", GLOBAL, [None, None, None]),
        ("RecordWindows('10 s')", "", [5, 5, 81]),
        ("TumblingBuffer(TimePolicy('1 min'))", "", [0, 0, 60]),
        ("Tumbling('1 min')", TRIGGER, [0, 0, 60]),
        ("Session('20 s')", TRIGGER, [5, 5, 70]),
    ],
)
def test_status_tells_the_size_of_state_of_firings_and_when_the_oldest_open_window_starts(
    tmp_path: Path, window: str, trigger: str, oldest: list[int | None]
) -> None:
    bounds = "Count" not in window and "Global" not in window
    mill = firings(tmp_path, NO_SPARK, window, trigger=trigger, bounds=bounds, collect=False)
    found: list[int | None] = []
    for rows, times in ((4, {"a": 5, "b": 9}), (None, {"b": 10}), (None, {"c": 81, "d": 70})):
        mill.feed([an_event(second, user, 1) for user, second in times.items()])
        [size] = state_sizes(mill.project, mill.project.pipeline("firings"), mill.run().position)
        assert rows in {None, size.rows}
        assert (size.table, size.kept_from, size.bytes > 0) == ("firings", None, True)
        found.append(None if size.oldest_open is None else (size.oldest_open - micros(NOW)) // 1_000_000)
    assert found == oldest
    assert mill.run(drain=True).position.oldest_open is None


@pytest.mark.parametrize("window", RECORDS)
def test_explain_says_that_rows_are_firings_and_state_is_of_keys_and_pieces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], window: str
) -> None:
    firings(tmp_path, NO_SPARK, window, bounds="Buffer" not in window)
    _, text = shown(tmp_path, capsys, "explain", "firings", "--json")
    for part in ("contract firings, each firing", "for each piece of them", "firings, merged from their pieces"):
        assert part in text
    for part in ("row by row", "pane"):
        assert part not in text


def test_firings_may_take_records_for_longer_than_state_of_panes_is_kept(tmp_path: Path) -> None:
    told = 'trigger=DefaultTrigger(), accumulation="accumulating"'
    kept = {"bounds": True, "lateness": "9 d", "maintenance": {"state": "1 day"}}
    mill = firings(tmp_path, NO_SPARK, "Tumbling('1 h')", trigger=told, **kept)
    assert [sink.table for sink in mill.project.pipeline("firings").sinks] == ["firings"]


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
def test_explain_of_a_window_refuses_firings_whose_windows_have_no_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], named: tuple[str, ...]
) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(1))", collect=False)
    mill.feed([an_event(0, "a", 1)])
    mill.run()
    code, text = shown(tmp_path, capsys, "explain", "firings", "--window", NOW.isoformat(), *named)
    assert code == 5
    assert "windows of firings (tumbling by count 1) have no start fix: name the key alone" in text


def test_a_backfill_that_has_begun_is_not_completed_by_whoever_wants_to_drop_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(1))", collect=False)
    mill.feed([an_event(0, "a", 1)])
    mill.run()
    with failing("after:planned=raise"), suppress(Injected):
        done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    code, text = shown(tmp_path, capsys, "backfill", "firings", "--cancel")
    assert code != 0
    assert "batch 2, the last one of the backfill, has begun" in text
    assert "--resume; to take it back then, say `tidemill rewind firings --to 1`" in text
    assert mill.project.ledger("firings").view().open_batch is not None
    done(resume(an_amendment(mill)))
    done(rewind(an_amendment(mill), 1))
    assert [row["batch_id"] for row in rows_of(mill.project.published_uri("firings"))] == [1]
