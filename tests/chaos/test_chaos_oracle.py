"""The oracle of the chaos: it computes what a log gives, and notices a single record that is lost or doubled."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from chaos import suite, workers
from chaos.oracle import Judgement, Moment, check_tiling, compare, raw_log, strangers, wrong_sights
from chaos.recompute import Contents, Recomputation, Row, Step
from chaos.records import BROKEN, START
from chaos.storm import AT_ONCE, WINDOWS_ALONE, Life, Outcome, Storm
from chaos.weather import FILES, SHOWN, TOPIC, Absence, move
from chaos.workers import ANOTHER, KINDS, Fate
from chaos.world import PIPELINE, make_world
from tidemill.core.plan.work import Kind
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import END
from tidemill.engine.aggregate.native_plan import left_to_spark_sql
from tidemill.log.records import NewRecord
from tidemill.project.project import Project

if TYPE_CHECKING:
    from chaos.crew import Crew


def event(second: float, user: str = "ada", amount: int = 1, number: int = 1) -> bytes:
    ts = (START + timedelta(seconds=second)).isoformat()
    return json.dumps({"id": number, "ts": ts, "user": user, "amount": amount}).encode()


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


SHOP, OTHER, WEB = ("shop", 0), ("shop", 1), ("web", 0)
LOG: dict[tuple[str, int], list[bytes | None]] = {
    SHOP: [event(5, amount=60, number=7), b"{cut", event(100)],
    OTHER: [event(98)],
    WEB: [event(99), event(54, "ben"), event(9, "ben", 70, 8), event(99, "nobody")],
}
STEPS = [
    Step(batch_id=1, ranges={SHOP: (range(3),), OTHER: (range(1),), WEB: (range(1),)}),
    Step(batch_id=3, ranges={WEB: (range(1, 4),)}, drain=True),
]


@pytest.fixture
def expected() -> Recomputation:
    return Recomputation(STEPS, LOG)


def judged(found: Contents, expected: Recomputation) -> Judgement:
    judgement = Judgement()
    compare(found, expected.contents, judgement)
    return judgement


def late(steps: list[Step]) -> list[Row]:
    return sorted(Recomputation(steps, LOG).contents["late"])


LATE = [Row((*WEB, offset, "sums")) for offset in (1, 2)]


def test_recomputation_puts_every_record_into_its_window_or_aside(expected: Recomputation) -> None:
    contents = {table: sorted(rows) for table, rows in expected.contents.items()}
    assert contents["large"] == [Row((7, "ada", 60)), Row((8, "ben", 70))]
    assert contents["quarantine"] == [Row((*SHOP, 1))]
    # The watermark stood at 95 s: what has a window that ends by 75 s is late.
    assert contents["late"] == LATE
    assert contents["sums"] == [
        Row((at(0), "ada"), 1, (60,)),
        Row((at(90), "ada"), 2, (2,)),
        Row((at(100), "ada"), 1, (1,)),
    ]


def test_recomputation_finds_watermarks_and_accounts_itself(expected: Recomputation) -> None:
    assert expected.watermarks == {1: micros(at(95)), 3: END}
    assert expected.accounts[1, "shop"] == {"read": 4, "rejected": 1, "aggregated": 3}
    assert expected.accounts[3, "web"] == {"read": 3, "late": 1, "aggregated": 1, "filtered": 1}


def test_recomputation_without_a_table_of_rows_has_none_and_counts_what_is_late_as_late() -> None:
    found = Recomputation(STEPS, LOG, large=math.inf)
    assert found.contents["large"] == []
    assert found.accounts[3, "web"] == {"read": 3, "late": 2, "filtered": 1}


def test_recomputation_has_every_record_in_a_session_in_firings_and_in_totals() -> None:
    found = Recomputation(STEPS, LOG, kinds=True)
    contents = {table: sorted(rows) for table, rows in found.contents.items()}
    assert contents["visits"] == [
        Row((at(5), "ada"), 1, (at(10), 60)),
        Row((at(9), "ben"), 1, (at(14), 70)),
        Row((at(54), "ben"), 1, (at(59), 1)),
        Row((at(98), "ada"), 3, (at(105), 3)),
    ]
    # Of a batch, topic by topic; the last one has only two records of ben.
    assert contents["threes"] == [Row(("ada", 62), 3)]
    assert contents["totals"] == [Row(("ada",), 4, (63,)), Row(("ben",), 2, (71,))]
    assert found.accounts[3, "web"] == {"read": 3, "aggregated": 2, "filtered": 1}


def test_recomputation_admits_late_records_that_a_repair_or_a_complete_backfill_took() -> None:
    again = {WEB: (range(1, 3),)}
    assert late([*STEPS, Step(batch_id=4, kind=Kind.REPAIR, late=True, ranges={WEB: (range(1, 2),)})]) == LATE[1:]
    open_job = Step(batch_id=4, kind=Kind.BACKFILL, ranges=again)
    assert late([*STEPS, open_job]) == LATE
    assert late([*STEPS, open_job, Step(batch_id=5, kind=Kind.BACKFILL, ranges={}, completes=True)]) == []
    given_up = Step(batch_id=5, kind=Kind.BACKFILL, ranges={}, completes=True, gives_up=True)
    assert late([*STEPS, open_job, given_up]) == LATE


def test_recomputation_goes_back_with_a_rewind() -> None:
    back = Step(batch_id=4, kind=Kind.REWIND, ranges={}, back_to=1)
    gone = Recomputation([*STEPS, back], LOG)
    assert gone.watermarks[4] == micros(at(95))
    assert len(gone.lost) == 3
    again = Recomputation([*STEPS, back, replace(STEPS[1], batch_id=5)], LOG)
    assert (again.lost, again.doubled) == ([], [])
    assert sorted(again.contents["late"]) == LATE


@pytest.mark.parametrize("value", BROKEN)
def test_recomputation_rejects_what_no_batch_can_take(value: bytes | None) -> None:
    found = Recomputation([], {WEB: [value]}).contents
    assert found["quarantine"] == [Row(("web", 0, 0))]


def test_right_tables_are_found_right(expected: Recomputation) -> None:
    assert judged(expected.contents, expected).good


TABLES = ["sums", "large", "quarantine", "late", "visits", "threes", "totals"]


@pytest.mark.parametrize("table", TABLES)
def test_one_row_that_is_lost_is_noticed(table: str) -> None:
    expected = Recomputation(STEPS, LOG, kinds=True)
    rows = expected.contents[table]
    found = judged({**expected.contents, table: rows[1:]}, expected)
    assert (found.lost.total(), found.doubled.total()) == (rows[0].records, 0)


@pytest.mark.parametrize("table", TABLES)
def test_one_row_that_is_doubled_is_noticed(table: str) -> None:
    expected = Recomputation(STEPS, LOG, kinds=True)
    rows = expected.contents[table]
    found = judged({**expected.contents, table: [*rows, rows[0]]}, expected)
    assert (found.lost.total(), found.doubled.total()) == (0, rows[0].records)


def test_record_that_is_counted_twice_in_a_window_is_noticed(expected: Recomputation) -> None:
    first, *rest = expected.contents["sums"]
    twice = first._replace(records=2 * first.records, values=(2 * first.values[0],))
    found = judged({**expected.contents, "sums": [twice, *rest]}, expected)
    assert found.doubled.total() == first.records
    assert len(found.wrong) == 1


def test_row_that_should_not_be_there_is_noticed(expected: Recomputation) -> None:
    found = judged({**expected.contents, "large": [*expected.contents["large"], Row((8, "ben", 50))]}, expected)
    assert found.doubled.total() == 1


def test_offsets_that_two_commits_hold_or_none_are_noticed(expected: Recomputation) -> None:
    good, wrong = Judgement(), Judgement()
    check_tiling(expected, good)
    assert good.good
    check_tiling(
        Recomputation([STEPS[0], replace(STEPS[1], ranges={SHOP: (range(2, 3),), WEB: (range(2, 4),)})], LOG), wrong
    )
    assert (wrong.lost.total(), wrong.doubled.total()) == (1, 1)


FEWER = replace(STEPS[1], wording="fewer", decided="fewer")
BY_CLEO = {**LOG, WEB: [*LOG[WEB][:3], event(99, "cleo", 80, 9)]}


def test_recomputation_means_what_somebody_decided_from_that_batch_on() -> None:
    before, after = (Recomputation([STEPS[0], step], BY_CLEO) for step in (STEPS[1], FEWER))
    assert {row.key[1] for row in before.contents["sums"]} == {"ada", "cleo"}
    assert {row.key[1] for row in after.contents["sums"]} == {"ada"}
    assert (before.accounts[3, "web"]["filtered"], after.accounts[3, "web"]["filtered"]) == (0, 1)
    assert before.wrong == after.wrong == []


def test_backfill_takes_records_again_by_what_numbers_mean_by_then() -> None:
    everything = {SHOP: (range(3),), OTHER: (range(1),), WEB: (range(4),)}
    again = Step(batch_id=4, kind=Kind.BACKFILL, ranges=everything, completes=True, wording="fewer")
    decided = replace(STEPS[1], batch_id=2, wording="fewer", decided="fewer", ranges={}, drain=False)
    read = replace(STEPS[0], ranges={**STEPS[0].ranges, WEB: (range(4),)})
    assert "cleo" in {row.key[1] for row in Recomputation([read, decided], BY_CLEO).contents["sums"]}
    found = Recomputation([read, decided, again], BY_CLEO)
    assert "cleo" not in {row.key[1] for row in found.contents["sums"]}
    assert found.wrong == []


@pytest.mark.parametrize("kind", [Kind.LIVE, Kind.BACKFILL, Kind.REPAIR])
def test_change_of_meaning_that_nobody_decided_is_noticed(kind: Kind) -> None:
    step = replace(FEWER, decided=None, kind=kind, completes=True, late=True, drain=False)
    assert Recomputation([STEPS[0], step], LOG).wrong == [
        "batch 3: leaves out ['cleo', 'nobody'] though nobody decided it"
    ]


def test_decision_that_another_declaration_takes_is_noticed() -> None:
    [wrong] = Recomputation([STEPS[0], replace(FEWER, wording="plain")], LOG).wrong
    assert "was decided for 'fewer', and took 'plain'" in wrong


def test_watermark_does_not_wait_for_what_is_missing() -> None:
    shown, gone = frozenset({SHOP, WEB}), frozenset({OTHER})
    last = Step(batch_id=3, ranges={WEB: (range(1, 4),)}, shown=shown, missing=gone, gone=gone)
    log = {**LOG, OTHER: [event(10)]}
    found = Recomputation([STEPS[0], last], log)
    assert found.watermarks == {1: micros(at(7)), 3: micros(at(96))}
    assert found.wrong == []
    back = Step(batch_id=4, ranges={}, drain=True)
    [wrong] = Recomputation([STEPS[0], last, back, replace(last, batch_id=5, ranges={}, gone=frozenset())], log).wrong
    assert wrong == f"batch 5: went on without {OTHER}, which nobody declared gone"


def test_partition_that_is_forgotten_is_noticed() -> None:
    forgets = replace(STEPS[1], shown=frozenset({SHOP, WEB}))
    assert Recomputation([STEPS[0], forgets], LOG).wrong == [f"batch 3: forgot {OTHER}"]


def test_what_a_batch_saw_is_compared_with_what_was_there() -> None:
    away = Absence(topic="shop", partition=1, way=SHOWN, leaves=10, left=11, comes=20, came=21)
    without = Step(batch_id=2, ranges={}, shown=frozenset({SHOP, WEB}), missing=frozenset({OTHER}))
    with_it = Step(batch_id=3, ranges={OTHER: (range(1),)})
    for since, until in ((5, 12), (12, 14), (20.5, 30)):
        assert list(wrong_sights([Moment(without, since, until)], [away])) == []
    for since, until in ((5, 12), (10.5, 14), (19, 25)):
        assert list(wrong_sights([Moment(with_it, since, until)], [away])) == []
    assert "was missing, which was there" in next(wrong_sights([Moment(without, 22, 30)], [away]))
    assert "was away all the time" in next(wrong_sights([Moment(with_it, 12, 14)], [away]))
    files = replace(away, way=FILES)
    assert "was missing, which was there" in next(wrong_sights([Moment(without, 12, 14)], [files]))
    assert list(wrong_sights([Moment(replace(with_it, ranges={}), 12, 14)], [files])) == []


def test_write_of_another_pipeline_is_noticed(tmp_path: Path) -> None:
    def written(by: str) -> None:
        kept = CommitProperties(app_transactions=[Transaction(by, 1)])
        rows = pa.table({"n": [1]})
        write_deltalake(tmp_path / "published" / "sums", rows, mode="append", commit_properties=kept)

    (tmp_path / "pipelines" / "mixed").mkdir(parents=True)
    written("mixed/sums")
    assert list(strangers(tmp_path)) == []
    written("other/sums")
    assert list(strangers(tmp_path)) == ["sums has a transaction of other/sums: version 1"]
    (tmp_path / "pipelines" / "other").mkdir()
    assert "a pipeline other, which should have been refused" in next(strangers(tmp_path))


@pytest.mark.parametrize("seed", range(0, 9, WINDOWS_ALONE))
def test_world_of_windows_alone_has_seats_that_need_spark_and_seats_that_do_not(tmp_path: Path, seed: int) -> None:
    world = make_world(tmp_path, ["sc://far:1"] * AT_ONCE, trigger="on_close", rows=False, seed=seed)
    assert left_to_spark_sql(world.load().pipeline(PIPELINE)) == ""
    assert {Project.load(seat).settings.driver_records for seat in world.seats} == {0, 1_000_000}
    assert world.load().settings.driver_records == 0


@pytest.mark.parametrize(("topic", "partition", "way"), [("web", 0, TOPIC), ("shop", 1, SHOWN), ("shop", 0, FILES)])
def test_weather_takes_away_and_brings_back_what_was_there(
    tmp_path: Path, topic: str, partition: int, way: str
) -> None:
    world = make_world(tmp_path, [], trigger="on_close")
    for place in (SHOP, OTHER, WEB):
        world.log.append(*place, [NewRecord(value=event(1))])
    before, names = raw_log(world), world.log.names()
    away = Absence(topic=topic, partition=partition, way=way, leaves=0, left=0)
    move(world, away, back=False)
    held = {name: {p: len(r) for p, r in world.log.bounds(name).items()} for name in world.log.names()}
    assert held.get(topic, {}).get(partition, 0) == 0
    assert sum(len(p) - list(p.values()).count(0) for p in held.values()) == 2
    move(world, away, back=True)
    assert (raw_log(world), world.log.names()) == (before, names)


ENDS = [
    (ANOTHER, 5, "ForeignTable", True),
    (ANOTHER, 0, "", False),
    (ANOTHER, 5, "UnknownTopic", False),
    (ANOTHER, 3, "Busy", False),
    (KINDS[0], 0, "", True),
    (KINDS[0], 5, "ForeignTable", False),
    (KINDS[0], 5, "OffsetsLost", False),
    (KINDS[0], 5, "Incompatible", False),
    (KINDS[0], 5, "ConfigError", False),
    (KINDS[1], 5, "BackfillOpen", True),
]


@pytest.mark.parametrize(("kind", "code", "error", "good"), ENDS)
def test_worker_that_ends_as_nothing_explains_is_a_finding(
    tmp_path: Path, kind: workers.Kind, code: int, error: str, good: bool
) -> None:
    storm = Storm(3, make_world(tmp_path / "world", [], trigger="on_close"), cast("Crew", None))
    said = tmp_path / "said"
    said.write_text(json.dumps({"event": "failed", "error": error}) if error else "")
    moments: dict[str, Any] = {"started": 0.0, "since": time.time(), "pending": {}, "renames": 0}
    storm._note(Life(kind=kind, fate=Fate(), folder=tmp_path, said=said, known=True, **moments), code)
    assert storm.outcome.judgement.good == good
    assert storm.outcome.refused.total() == (good and bool(error))


@pytest.mark.parametrize(("error", "good"), [("UnknownTopic", True), ("ForeignTable", True), ("Incompatible", False)])
def test_stranger_is_refused_by_one_of_two_names_while_a_topic_is_away(tmp_path: Path, error: str, good: bool) -> None:
    world = make_world(tmp_path / "world", [], trigger="on_close")
    storm, said = Storm(3, world, cast("Crew", None)), tmp_path / "said"
    said.write_text(json.dumps({"event": "failed", "error": error}))
    away = Absence(topic="web", partition=0, way=TOPIC, leaves=5, left=5, comes=20, came=20)
    world.journal.write_text(json.dumps(asdict(away)))
    moments: dict[str, Any] = {"started": 0.0, "since": 10.0, "pending": {}, "renames": 0}
    storm._note(Life(kind=ANOTHER, fate=Fate(), folder=tmp_path, said=said, known=True, **moments), 5)
    assert storm.outcome.judgement.good == good


def test_failure_names_the_command_that_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = Outcome(seed=17, folder=tmp_path, kills=9, judgement=Judgement(batches=4))
    outcome.judgement.lost["offset 3"] += 1
    outcome.refused["ForeignTable"] += 2
    suite.tell(outcome, 12)
    monkeypatch.setattr(suite, "run_seeds", lambda *_, **__: [outcome])
    figures = tmp_path / "chaos.json"
    assert suite.main(["--seeds", "1", "--figures", str(figures)]) == 1
    told = capsys.readouterr()
    assert "again: python benchmarks/chaos/chaos.py --seed 17 --kills 12" in told.err
    assert "lost: offset 3 (1)" in told.err
    seconds = json.loads(figures.read_text()).pop("seconds")
    assert json.loads(figures.read_text()) == {
        "seeds": 1,
        "kills": 9,
        "batches": 4,
        "fenced": 0,
        "lost": 1,
        "doubled": 0,
        "refused": {"ForeignTable": 2},
        "seconds": seconds,
    }
