"""The oracle of the chaos: it computes what a log gives, and notices a single record that is lost or doubled."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from chaos import suite
from chaos.oracle import Judgement, check_tiling, compare
from chaos.recompute import Contents, Recomputation, Row, Step
from chaos.records import BROKEN, START
from chaos.storm import Outcome
from tidemill.core.plan import Kind
from tidemill.core.times import micros
from tidemill.core.watermarks import END


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


@pytest.mark.parametrize("table", ["sums", "large", "quarantine", "late"])
def test_one_row_that_is_lost_is_noticed(expected: Recomputation, table: str) -> None:
    rows = expected.contents[table]
    found = judged({**expected.contents, table: rows[1:]}, expected)
    assert (found.lost.total(), found.doubled.total()) == (1, 0)


@pytest.mark.parametrize("table", ["sums", "large", "quarantine", "late"])
def test_one_row_that_is_doubled_is_noticed(expected: Recomputation, table: str) -> None:
    rows = expected.contents[table]
    found = judged({**expected.contents, table: [*rows, rows[0]]}, expected)
    assert (found.lost.total(), found.doubled.total()) == (0, 1)


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


def test_failure_names_the_command_that_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = Outcome(seed=17, folder=tmp_path, kills=9, judgement=Judgement(batches=4))
    outcome.judgement.lost["offset 3"] += 1
    suite.tell(outcome, 12)
    monkeypatch.setattr(suite, "run_seeds", lambda *_, **__: [outcome])
    figures = tmp_path / "chaos.json"
    assert suite.main(["--seeds", "1", "--figures", str(figures)]) == 1
    told = capsys.readouterr()
    assert "again: python tests/chaos/chaos.py --seed 17 --kills 12" in told.err
    assert "lost: offset 3 (1)" in told.err
    seconds = json.loads(figures.read_text()).pop("seconds")
    assert json.loads(figures.read_text()) == {
        "seeds": 1,
        "kills": 9,
        "batches": 4,
        "fenced": 0,
        "lost": 1,
        "doubled": 0,
        "seconds": seconds,
    }
