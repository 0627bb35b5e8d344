"""The oracle of the chaos: it computes what a log gives, and notices a single record that is lost or doubled."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from chaos import suite
from chaos.oracle import Judgement, check_tiling, compare
from chaos.recompute import Contents, Cut, Recomputation, Row
from chaos.records import BROKEN, START
from chaos.storm import Outcome
from tidemill.core.times import micros
from tidemill.core.watermarks import END


def event(second: float, user: str = "ada", amount: int = 1, number: int = 1) -> bytes:
    ts = (START + timedelta(seconds=second)).isoformat()
    return json.dumps({"id": number, "ts": ts, "user": user, "amount": amount}).encode()


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


LOG: dict[tuple[str, int], list[bytes | None]] = {
    ("shop", 0): [event(5, amount=60, number=7), b"{cut", event(100)],
    ("shop", 1): [event(98)],
    ("web", 0): [event(99), event(54, "ben"), event(9, "ben"), event(99, "nobody")],
}
CUTS = [
    Cut(batch_id=1, ranges={("shop", 0): range(3), ("shop", 1): range(1), ("web", 0): range(1)}),
    Cut(batch_id=3, ranges={("shop", 0): range(3, 3), ("shop", 1): range(1, 1), ("web", 0): range(1, 4)}, drain=True),
]


@pytest.fixture
def expected() -> Recomputation:
    return Recomputation.of(CUTS, LOG)


def judged(found: Contents, expected: Recomputation) -> Judgement:
    judgement = Judgement()
    compare(found, expected.contents, judgement)
    return judgement


def test_recomputation_puts_every_record_into_its_windows_or_aside(expected: Recomputation) -> None:
    contents = {table: sorted(rows) for table, rows in expected.contents.items()}
    assert contents["large"] == [Row((7, "ada", 60))]
    assert contents["quarantine"] == [Row(("shop", 0, 1))]
    # The watermark stood at 95 s: what has no window that ends after 75 s is late.
    assert contents["late"] == [Row(("web", 0, offset, "sums")) for offset in (1, 2)]
    assert contents["sums"] == [
        Row((at(-10), "ada"), 1, (60,)),
        Row((at(0), "ada"), 1, (60,)),
        Row((at(80), "ada"), 2, (2,)),
        Row((at(90), "ada"), 3, (3,)),
        Row((at(100), "ada"), 1, (1,)),
    ]


def test_recomputation_finds_watermarks_and_accounts_itself(expected: Recomputation) -> None:
    assert expected.watermarks == {1: micros(at(95)), 3: END}
    assert expected.accounts[1, "shop"] == {"read": 4, "rejected": 1, "aggregated": 3}
    assert expected.accounts[3, "web"] == {"read": 3, "late": 2, "filtered": 1}


@pytest.mark.parametrize("value", BROKEN)
def test_recomputation_rejects_what_no_batch_can_take(value: bytes | None) -> None:
    found = Recomputation.of([], {("web", 0): [value]}).contents
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
    twice = first._replace(records=2, values=(120,))
    found = judged({**expected.contents, "sums": [twice, *rest]}, expected)
    assert found.doubled.total() == 1
    assert len(found.wrong) == 1


def test_row_that_should_not_be_there_is_noticed(expected: Recomputation) -> None:
    found = judged({**expected.contents, "large": [*expected.contents["large"], Row((8, "ben", 50))]}, expected)
    assert found.doubled.total() == 1


def test_offsets_that_two_commits_hold_or_none_are_noticed() -> None:
    good, wrong = Judgement(), Judgement()
    ends = {place: len(values) for place, values in LOG.items()}
    check_tiling(CUTS, ends, good)
    assert good.good
    skipping = replace(CUTS[1], ranges={**CUTS[1].ranges, ("shop", 0): range(2, 3), ("web", 0): range(2, 4)})
    check_tiling([CUTS[0], skipping], ends, wrong)
    assert (wrong.lost.total(), wrong.doubled.total(), len(wrong.wrong)) == (1, 1, 2)


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
