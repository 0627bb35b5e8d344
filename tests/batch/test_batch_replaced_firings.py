"""Firings that update the row of the firing before, by both writers: computed, checked, computed again, taken back."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from batch.test_batch_buffers import checked
from support.firings import firings
from support.projects import NOW, Mill, an_event
from tidemill.core.repair.selection import OfOffsets
from tidemill.engine.publish import kept_pieces
from tidemill.repair.backfill import backfill
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.spark

EARLY = (
    'trigger=AfterWatermark(early=AfterCount(1), late=AfterCount(1)), accumulation="accumulating_and_replacing", '
    'index="nth", timing="timing"'
)
HEAVY = '.filter("amount < 100").publish('
ALL = OfOffsets(since={}, until={})


def sessions(folder: Path, spark: Any, writer: str) -> Mill:
    """Sessions whose amounts are less than 100."""
    settings = {"writer": writer, "aggregate": "spark"} if writer == "spark" else {}
    mill = firings(
        *(folder, spark, "Session('5 s')"), trigger=EARLY, bounds=True, delay="8 s", lateness="30 s", **settings
    )
    path = folder / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace(".publish(", HEAVY))
    return Mill(mill.project.load(folder), spark, "firings")


def shown(mill: Mill) -> list[tuple[Any, ...]]:
    rows = (
        (r["user"], r["window_start"], r["window_end"], r["nth"], r["timing"], r["amount"]) for r in mill.published()
    )
    return sorted((u, (a - NOW).seconds, (b - NOW).seconds, *rest) for u, a, b, *rest in rows)


@pytest.mark.parametrize("writer", ["delta-rs", pytest.param("spark", marks=pytest.mark.long)])
def test_a_window_has_one_row_which_each_firing_updates(tmp_path: Path, spark: Any, writer: str) -> None:
    mill = sessions(tmp_path, spark, writer)
    mill.feed([an_event(0, "a", 1), an_event(8, "a", 2), an_event(1, "b", 3), an_event(9, "b", 4)])
    mill.run()
    two = [("a", 0, 5, 0, "EARLY", 1), ("a", 8, 13, 0, "EARLY", 2)]
    assert shown(mill) == [*two, ("b", 1, 6, 0, "EARLY", 3), ("b", 9, 14, 0, "EARLY", 4)]
    # One record makes two sessions of a one; b's second session grows beyond what the filter takes.
    mill.feed([an_event(4, "a", 10), an_event(10, "b", 99)])
    mill.run()
    assert shown(mill) == [("a", 0, 13, 1, "EARLY", 13), ("b", 1, 6, 0, "EARLY", 3)]
    mill.feed([an_event(40, "c", 0), an_event(11, "b", -50)])
    mill.run()
    merged = [("a", 0, 13, 2, "ON_TIME", 13), ("b", 1, 6, 1, "ON_TIME", 3), ("b", 9, 16, 3, "ON_TIME", 53)]
    assert shown(mill) == [*merged, ("c", 40, 45, 0, "EARLY", 0)]
    checked(mill)
    done(backfill(an_amendment(mill), ALL))
    assert shown(mill) == [*merged, ("c", 40, 45, 0, "EARLY", 0)]
    checked(mill)
    done(rewind(an_amendment(mill), 2))
    assert shown(mill) == [("a", 0, 13, 1, "EARLY", 13), ("b", 1, 6, 0, "EARLY", 3)]
    mill.run()
    assert shown(mill) == [*merged, ("c", 40, 45, 0, "EARLY", 0)]
    checked(mill)


@pytest.mark.parametrize("writer", ["delta-rs", pytest.param("spark", marks=pytest.mark.long)])
def test_totals_at_an_interval_are_one_row_for_each_key(tmp_path: Path, spark: Any, writer: str) -> None:
    trigger = 'trigger=Repeatedly(AfterProcessingTime("1 minute")), accumulation="accumulating_and_replacing"'
    settings = {"writer": writer, "aggregate": "spark"} if writer == "spark" else {}
    mill = firings(tmp_path, spark, "Global()", trigger=trigger, **settings)
    seen = []
    for second, users in ((0, "aab"), (61, "b"), (70, ""), (130, "")):
        mill.feed([an_event(second, user, second + 1) for user in users])
        mill.run(clock=NOW + timedelta(seconds=second))
        seen.append(sorted((row["user"], row["n"], row["amount"]) for row in mill.published()))
    first = [("a", 2, 2), ("b", 2, 63)]
    assert seen == [[], first, first, first]
    checked(mill)


@pytest.mark.parametrize("writer", ["delta-rs", pytest.param("spark", marks=pytest.mark.long)])
def test_a_total_that_has_fired_often_is_that_of_all_its_records(
    tmp_path: Path, spark: Any, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_pieces, "TIMES", 1)
    monkeypatch.setattr(kept_pieces, "OUTGROWN", 4)
    trigger = 'trigger=Repeatedly(AfterCount(1)), accumulation="accumulating_and_replacing"'
    settings = {"writer": writer, "aggregate": "spark"} if writer == "spark" else {}
    mill = firings(tmp_path, spark, "Global()", trigger=trigger, **settings)
    for number in range(5):
        mill.feed([an_event(number, user, 4 * number + n) for n in range(4) for user in "ab"])
        mill.run()
    assert mill.project.ledger("firings").view().position.firings_from is not None
    every = list(range(20))
    assert [(row["n"], row["amount"], sorted(row["amounts"])) for row in mill.published()] == [(20, 190, every)] * 2
    checked(mill)
    done(backfill(an_amendment(mill), ALL))
    assert [(row["n"], row["amount"], sorted(row["amounts"])) for row in mill.published()] == [(20, 190, every)] * 2


def test_verify_knows_that_sums_of_doubles_depend_on_where_batches_are_cut(tmp_path: Path, spark: Any) -> None:
    trigger = 'trigger=Repeatedly(AfterCount(3)), accumulation="accumulating_and_replacing"'
    mill = firings(tmp_path, spark, "Tumbling('1 hour')", trigger=trigger, bounds=True, collect=False)
    for file, old, new in (
        ("pipelines/pipeline.py", 'Sum("amount")', 'Sum("amount / 10e0")'),
        ("data_contracts/firings.odcs.yaml", "name: amount, logicalType: integer", "name: amount, logicalType: number"),
    ):
        path = tmp_path / file
        path.write_text(path.read_text().replace(old, new))
    mill = Mill(mill.project.load(tmp_path), spark, "firings")
    for amounts in ([1], [2, 3]):
        mill.feed([an_event(second, "a", amount) for second, amount in enumerate(amounts)])
        mill.run()
    assert [row["amount"] for row in mill.published()] == [0.1 + (0.2 + 0.3)] != [0.1 + 0.2 + 0.3]
    checked(mill)
