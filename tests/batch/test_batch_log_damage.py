"""A log that does not hold what a batch needs: the error names it, nothing moves, and the log brought back goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from support.projects import Mill, an_event, sums
from support.short_forms import crossed
from support.ways import WAYS
from tidemill.core.errors import EngineError, LogError, OffsetsLost, SegmentDamaged, TopicRecreated
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.engine.aggregate import native_plan
from tidemill.engine.aggregate.input_stream import Stream
from tidemill.engine.attempt import Attempt
from tidemill.engine.read import typed_rows
from tidemill.engine.read.segments import Segments

pytestmark = pytest.mark.spark


def segments(mill: Mill) -> list[Path]:
    """Four files of partition 1 with two records each; the first is committed."""
    return sorted(Path(mill.project.settings.log).glob("events/*/1/*.parquet"))


def lose_a_middle_segment(mill: Mill) -> None:
    segments(mill)[2].unlink()


def lose_the_end(mill: Mill) -> None:
    for segment in segments(mill):
        segment.unlink()


def trim_beyond_the_committed_offset(mill: Mill) -> None:
    mill.log.trim("events", 1, 5)


def create_the_topic_again(mill: Mill) -> None:
    mill.log.delete_topic("events")
    mill.log.create_topic("events", partitions=2)
    for partition in (0, 1):
        mill.feed([an_event(40 + i) for i in range(8)], partition=partition)


def cut_short(number: int) -> Callable[[Mill], None]:
    def cut(mill: Mill) -> None:
        segment = segments(mill)[number]
        segment.write_bytes(segment.read_bytes()[:-100])

    return cut


@dataclass(frozen=True, kw_only=True)
class Damage:
    """What is done to the log, and what a run says."""

    do: Callable[[Mill], None]
    error: type[LogError]
    text: str


DAMAGES = {
    "a hole": Damage(
        do=lose_a_middle_segment,
        error=OffsetsLost,
        text=r"topic events partition 1: offsets 4 to 5 are missing.* at 4.* at 6",
    ),
    "a middle segment cut short": Damage(
        do=cut_short(2),
        error=SegmentDamaged,
        text=r"/events/\w+/1/0{19}4\.parquet is damaged",
    ),
    "the newest segment cut short": Damage(
        do=cut_short(-1),
        error=SegmentDamaged,
        text=r"/events/\w+/1/0{19}6\.parquet is damaged",
    ),
    "retention past the committed offset": Damage(
        do=trim_beyond_the_committed_offset,
        error=OffsetsLost,
        text=r"events-1: offsets 2 to 4 are gone.* committed offset 2.* starts at 5",
    ),
    "an end before the committed offset": Damage(
        do=lose_the_end,
        error=OffsetsLost,
        text=r"events-1: the log ends at 0.* committed offset 2",
    ),
    "another topic of the same name": Damage(
        do=create_the_topic_again,
        error=TopicRecreated,
        text=r"`events` was deleted and created again: expected id \w+, found \w+",
    ),
}


def a_begun_log(folder: Path, spark: Any) -> Mill:
    """A batch has committed two records of each partition; three segments of each wait for the next."""
    mill = sums(folder, spark, partitions=2)
    for base in (0, 20, 40, 60):
        for partition in (0, 1):
            mill.feed([an_event(base), an_event(base + 10)], partition=partition)
        if base == 0:
            mill.run()
    return mill


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_log_that_lost_records_is_refused_by_name_until_it_is_back(
    tmp_path: Path, spark: Any, damage: Damage
) -> None:
    mill = a_begun_log(tmp_path, spark)
    log, copy, ledger = mill.project.settings.log, tmp_path / "copy", mill.project.ledger("sums")
    shutil.copytree(log, copy)
    before, position = mill.everything(), ledger.view().position
    assert [(r["user"], r["n"]) for r in before["sums"]] == [("a", 2)]
    damage.do(mill)
    for _ in range(2):
        with pytest.raises(damage.error, match=damage.text):
            mill.run()
        view = ledger.view()
        assert (view.position, view.open_batch) == (position, None)
        assert mill.everything() == before
    shutil.rmtree(log)
    shutil.copytree(copy, log)
    mill.catch_up()
    assert [r["n"] for r in mill.published()] == [2] * 8
    assert ledger.view().position.topics["events"].offsets == {0: 8, 1: 8}


INSIDE = {
    "trimmed": (lambda mill: mill.log.trim("events", 1, 5), r"topic events partition 1: .*offsets 2 "),
    "a hole": (lose_a_middle_segment, r"topic events partition 1: offsets 4 to 5 are missing.* at 4.* at 6"),
    "created again": (create_the_topic_again, r"`events`|topic events"),
}


@pytest.mark.parametrize("how", INSIDE)
def test_a_log_that_lost_records_of_an_open_plan_is_refused_until_it_is_back(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    mill, (damage, text) = a_begun_log(tmp_path, spark), INSIDE[how]
    log, copy, ledger = mill.project.settings.log, tmp_path / "copy", mill.project.ledger("sums")
    monkeypatch.setenv(VARIABLE, "planned=raise")
    with pytest.raises(Injected):
        mill.run()
    monkeypatch.delenv(VARIABLE)
    shutil.copytree(log, copy)
    before, view = mill.everything(), ledger.view()
    damage(mill)
    for _ in range(2):
        with pytest.raises(LogError, match=text) as caught:
            mill.run()
        assert caught.value.fix
        assert ledger.view() == view, "not even a claim is written"
        assert mill.everything() == before
    shutil.rmtree(log)
    shutil.copytree(copy, log)
    assert mill.run().attempt == 2
    mill.catch_up()
    assert [r["n"] for r in mill.published()] == [2] * 8


@pytest.mark.parametrize("way", WAYS)
def test_files_that_are_away_while_spark_lists_them_are_asked_for_again(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    mill = sums(tmp_path, spark, **WAYS[way])
    for second in (1, 2):
        mill.feed([an_event(second)])
    scanned = Segments.of
    with monkeypatch.context() as patch:
        patch.setattr(Segments, "of", lambda scan: scanned(replace(scan, files=scan.files[1:])))
        with pytest.raises(EngineError, match="files went away while the batch read them: expected 2 rows, found 1"):
            mill.run()
    assert mill.run(drain=True).accounts["events"].read == 2


@pytest.mark.parametrize(("way", "gone"), crossed(WAYS, ["away", "cut"]))
def test_file_that_a_worker_cannot_read_fails_the_batch_and_is_asked_for_again(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, way: str, gone: str
) -> None:
    mill = sums(tmp_path, spark, **WAYS[way])
    mill.feed([an_event(1)])
    [segment] = mill.log.scan(mill.log.topic("events").topic_id, [OffsetRange(TopicPartition("events", 0), 0, 1)]).files
    whole, planned = Path(segment).read_bytes(), Attempt.read

    def lose(attempt: Attempt) -> Any:
        Path(segment).write_bytes(whole[:-40] + bytes(40)) if gone == "cut" else Path(segment).unlink()
        return planned(attempt)

    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "read", lose)
        with pytest.raises(EngineError) as caught:
            mill.run()
    assert ("a file went away" in caught.value.message) == (gone == "away")
    assert "run it again" in caught.value.fix
    assert "Traceback" not in str(caught.value)
    Path(segment).write_bytes(whole)
    assert mill.run(drain=True).accounts["events"].read == 1


@pytest.mark.parametrize(("way", "table"), crossed(WAYS, ["quarantine", "late"]))
def test_rejected_and_late_rows_must_be_as_many_as_were_counted(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, table: str, way: str
) -> None:
    mill = sums(tmp_path, spark, **WAYS[way])
    mill.feed([an_event(3_000)])
    mill.run()
    mill.feed([b"{" if table == "quarantine" else an_event(1), an_event(3_001)])
    found = Stream.side_outputs
    with monkeypatch.context() as patch:
        patch.setattr(typed_rows, "_HELD_RECORDS", 0)
        patch.setattr(native_plan, "_HELD_BYTES", 0)
        patch.setattr(Stream, "side_outputs", lambda stream, counts: found(stream, counts).where("false"))
        with pytest.raises(EngineError, match=f"table {table}: files went away"):
            mill.run()
    mill.run()
    assert len(mill.own(table)) == 1
