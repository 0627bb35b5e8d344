"""The generator that feeds a log: as many records as asked for, with the times at which they arrive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tidemill.core.errors import ConfigError
from tidemill.demo import feed
from tidemill.demo.site import PARTITIONS, TOPIC
from tidemill.log.memory import MemoryLog

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def test_chunks_follow_each_other_without_a_gap_and_repeat_byte_by_byte():
    what = feed.Feed(begin=BEGIN, rate=20, every=timedelta(seconds=5))
    ends = [what.chunk(number)[0] for number in range(3)]
    assert ends == [BEGIN + timedelta(seconds=seconds) for seconds in (5, 10, 15)]
    first, again, second = (list(what.chunk(number)[1]) for number in (0, 0, 1))
    assert len(first) == len(second) == 100
    assert first == again != second


def test_feed_makes_its_topic_appends_at_the_rate_and_waits_for_each_chunk():
    log, waited = MemoryLog(), list[float]()
    what = feed.Feed(begin=datetime.now(UTC), rate=10)
    assert feed.feed(feed.open_topic(log), what, sleep=waited.append, most=3) == 150
    assert sum(len(held) for held in log.bounds(TOPIC).values()) == 150
    assert log.topic(TOPIC).partitions == PARTITIONS
    assert waited[0] < waited[1] < waited[2] <= 15
    assert feed.feed(feed.open_topic(log), what, sleep=waited.append, most=1) == 50
    assert sum(len(held) for held in log.bounds(TOPIC).values()) == 200


def test_slow_feed_still_appends_something():
    assert len(list(feed.Feed(begin=BEGIN, rate=1, every=timedelta(milliseconds=1)).chunk(0)[1])) == 1


@pytest.mark.parametrize("rate", [0, -5])
def test_rate_below_one_is_refused(rate):
    with pytest.raises(ConfigError, match="--rate: expected at least 1"):
        feed.Feed(begin=BEGIN, rate=rate)


def test_log_of_others_is_not_fed(tmp_path: Path, capsys):
    (tmp_path / "tidemill.toml").write_text('[log]\npath = "log"\nlayout = "kafka-connect"\n')
    assert feed.main(["--project", str(tmp_path)]) == 5
    assert "cannot be written to" in capsys.readouterr().err


def test_folder_without_a_project_is_an_error_and_no_stack_trace(tmp_path: Path, capsys):
    assert feed.main(["--project", str(tmp_path)]) == 5
    assert "tidemill.toml" in capsys.readouterr().err
