"""What Kafka Connect wrote is a log: every line at its offset, wherever files begin and end; nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from support.landing import land
from support.projects import EVENTS_CONTRACT, NOW, SUMS_CONTRACT, SUMS_PIPELINE, Mill, a_project, an_event
from tidemill.core.errors import ConfigError, LogInputError, OffsetsLost, SegmentDamaged
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.inspect.verify import Scope, verify
from tidemill.log.landing import LandingLog
from tidemill.log.reading import check_whole, read_records, read_topic
from tidemill.project.project import Project
from tidemill.repair.rewind import preview, rewind
from tidemill.run.batch import NothingToDo
from tidemill.stores.local import LocalStore

Land = Callable[..., Path]


def a_log(root: Path, **how: Any) -> LandingLog:
    return LandingLog(str(root), LocalStore(root), **how)


def values(log: LandingLog, **which: Any) -> list[tuple[int, int, bytes | None]]:
    return [(r.partition, r.offset, r.value) for r in read_topic(log, "events", **which)]


def test_every_line_has_the_offset_that_its_file_gives_it(tmp_path: Path) -> None:
    land(tmp_path, 7, [b"a", b"b"])
    land(tmp_path, 9, [b"c"], packed=False)
    land(tmp_path, 0, [b"x", b"", b"z"], partition=2)
    (tmp_path / "events" / "partition=0" / "_SUCCESS").touch()
    log = a_log(tmp_path)
    assert [(t.name, t.partitions) for t in log.topics()] == [("events", 3)]
    bounds = {n: (held.from_offset, held.until_offset) for n, held in log.bounds("events").items()}
    assert bounds == {0: (7, 10), 2: (0, 3)}, "where partition 1 begins nobody knows before it has a file"
    assert values(log) == [(0, 7, b"a"), (0, 8, b"b"), (0, 9, b"c"), (2, 0, b"x"), (2, 1, b""), (2, 2, b"z")]
    assert values(log, partition=0, from_offset=8, limit=1) == [(0, 8, b"b")]
    assert log.usage("events")[0].segments == 2


@pytest.mark.parametrize(
    ("files", "absent"),
    [
        ({0: 3, 3: 2}, ""),
        ({0: 4, 2: 2, 4: 1}, ""),
        ({0: 2, 3: 1, 5: 2}, "offset 2, events-0 offset 4"),
        ({0: 10, 5: 2, 10: 1}, "offsets 7 to 9"),
        ({0: 3, 1: 0, 3: 2}, "offsets 1 to 2"),
        ({0: 1, 2: 1, 4: 1, 6: 1, 8: 1}, "offset 1, events-0 offset 3, events-0 offset 5 and 1 more stretches"),
    ],
)
def test_offsets_that_no_file_holds_are_named(tmp_path: Path, files: dict[int, int], absent: str) -> None:
    for first, count in files.items():
        land(tmp_path, first, [b"x"] * count)
    log = a_log(tmp_path)
    scan = log.scan(log.topic("events").topic_id, [log.bounds("events")[0]])
    found = {record.offset for record in read_records(scan)}
    gone = sorted(set(range(scan.ranges[0].until_offset)) - found)
    assert (absent == "") == (not gone)
    with pytest.raises(OffsetsLost, match=f"^no file holds events-0 {absent}\n") if absent else nullcontext():
        check_whole(scan)
    check_whole(replace(scan, dense=False))


def test_two_files_that_begin_at_the_same_offset_are_refused(tmp_path: Path) -> None:
    land(tmp_path, 0, [b"a", b"b"])
    land(tmp_path, 0, [b"a"], packed=False)
    with pytest.raises(SegmentDamaged, match=r"events-0: .*\.json and .*\.json\.gz both begin at offset 0"):
        a_log(tmp_path).bounds("events")


def test_a_record_that_is_in_two_files_counts_once(tmp_path: Path) -> None:
    for first, lines in ((0, [b"a", b"b", b"c", b"d"]), (2, [b"c", b"d"]), (4, [b"e"])):
        land(tmp_path, first, lines)
    assert [offset for _, offset, _ in values(a_log(tmp_path))] == [0, 1, 2, 3, 4]


def test_offsets_that_are_not_there_are_refused(tmp_path: Path) -> None:
    gone = land(tmp_path, 0, [b"a", b"b"])
    land(tmp_path, 2, [b"c"])
    log, place = a_log(tmp_path), TopicPartition("events", 0)
    identity = log.topic("events").topic_id
    with pytest.raises(OffsetsLost, match="the log ends at 3"):
        log.scan(identity, [OffsetRange(place, 0, 4)])
    gone.unlink()
    with pytest.raises(OffsetsLost, match="offsets 0 to 1 are gone"):
        log.scan(identity, [OffsetRange(place, 0, 3)])
    with pytest.raises(LogInputError, match="do not say when"):
        log.offset_at("events", 0, NOW)


def test_a_file_that_cannot_be_unpacked_is_named(tmp_path: Path) -> None:
    path = land(tmp_path, 0, [b"a"])
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(SegmentDamaged, match=r"events\+0\+0000000000\.json\.gz"):
        a_log(tmp_path).bounds("events")


def a_mill(folder: Path, spark: Any, log: str, **settings: Any) -> Mill:
    """The pipeline `sums` over a landing zone."""
    text = SUMS_PIPELINE.replace("WINDOW", 'Tumbling("10 seconds")').replace("DELAY", "0 s")
    text = text.replace("LATENESS", "0 s").replace("TRIGGER", "on_close")
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "sums": SUMS_CONTRACT}
    a_project(folder, text, contracts, **settings)
    with (folder / "tidemill.toml").open("a") as file:
        file.write(f"[log]\n{log}\n")
    return Mill(Project.load(folder), spark, "sums")


@pytest.mark.spark
def test_batches_read_it_once_however_it_is_cut(tmp_path: Path, spark: Any) -> None:
    root = tmp_path / "landing"
    land(root, 0, [an_event(1), an_event(2, "b"), b"{cut"])
    land(root, 3, [an_event(15), an_event(16)], packed=False)
    mill = a_mill(tmp_path / "mill", spark, f'path = "{root}"\nlayout = "kafka-connect"', driver_records=0)
    assert [mill.run(limit=2).accounts["events"].read for _ in range(2)] == [2, 2]
    land(root, 5, [an_event(30), an_event(45)])
    mill.catch_up()
    assert isinstance(mill.run(), NothingToDo)
    assert [r["n"] for r in mill.published()] == [1, 1, 2, 1, 1]
    assert [r["offset"] for r in mill.own("quarantine")] == [2]


@pytest.mark.spark
def test_a_hole_between_files_is_a_loss_unless_gaps_are_allowed(tmp_path: Path, spark: Any) -> None:
    root = tmp_path / "landing"
    land(root, 0, [an_event(1), an_event(2)])
    land(root, 3, [an_event(15)])
    place = f'path = "{root}"\nlayout = "kafka-connect"'
    mill = a_mill(tmp_path / "strict", spark, place)
    with pytest.raises(OffsetsLost, match=r"^sums: batch 1: input events: no file holds events-0 offset 2; nothing"):
        mill.run()
    assert mill.project.ledger("sums").view().position.topics == {}
    late = land(root, 2, [an_event(3)])
    assert mill.run(drain=True).accounts["events"].read == 4
    job = an_amendment(mill)
    assert all(table.agrees for table in verify(job, Scope()))
    late.unlink()
    for reads in (partial(verify, scope=Scope()), partial(rewind, to=0), partial(preview, to=0)):
        with pytest.raises(OffsetsLost, match="no file holds events-0 offset 2"):
            list(reads(job))
    assert mill.project.ledger("sums").view().position.batch_id == 1
    loose = a_mill(tmp_path / "loose", spark, f"{place}\ngaps = true")
    assert loose.run(drain=True).accounts["events"].read == 3


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ('path = "x"\nlayout = "parquet"', 'expected "kafka-connect", found "parquet"'),
        ('path = "x"\ngaps = true', "only files of others"),
        ('kafka = "b:9092"\nlayout = "kafka-connect"', "a folder, `path`, or a cluster"),
    ],
)
def test_settings_that_mean_nothing_are_refused(tmp_path: Path, log: str, said: str) -> None:
    (tmp_path / "tidemill.toml").write_text(f"[log]\n{log}\n")
    with pytest.raises(ConfigError, match=said):
        Project.load(tmp_path)


@pytest.mark.parametrize("place", ["s3a://bucket/x", "S3://bucket/x", "s3://", "http://bucket/x"])
def test_addresses_that_are_none_are_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "tidemill.toml").write_text(f'[log]\npath = "{place}"\n')
    with pytest.raises(ConfigError, match="expected a folder or s3://"):
        Project.load(tmp_path)
