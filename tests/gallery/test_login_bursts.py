"""Failed logins: what is published equals plain queries, however batches cut the log."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gallery import plain
from gallery.conftest import append, differences, run_cut
from tidemill.project.project import Project
from tidemill.testing.trial import Trial

pytestmark = pytest.mark.spark

QUERIES = {
    "login_bursts": plain.BURSTS,
    "attacker_sessions": plain.SESSIONS,
    "attack_waves": plain.WAVES,
}
NOON = datetime(2018, 6, 1, 12, tzinfo=UTC)


def test_tables_equal_plain_queries_over_the_file_wherever_batches_are_cut(
    gallery: Path, spark: Any, shared_data: Path
) -> None:
    append(gallery, "logins", shared_data / "logins_2018.csv", "--key", "source_ip")
    chance = random.Random(16)
    mill = run_cut(gallery, spark, "login_bursts", [chance.randint(1, 9_000) for _ in range(4)])
    database = plain.logins(shared_data)
    for table, query in QUERIES.items():
        found, wanted = plain.ordered(mill.published(table)), plain.ordered(plain.rows(database, query))
        assert len(wanted) > 5
        assert differences(found, wanted) == [], table


def failures(*seconds: float, source: str = "1.1.1.1") -> Iterable[bytes]:
    """Attempts that fail, so many seconds after noon."""
    for second in seconds:
        moment = (NOON + timedelta(seconds=second)).replace(tzinfo=None)
        yield f"{moment.isoformat(' ')},{source},root,False,error_wrong_password".encode()


@pytest.mark.parametrize(
    ("seconds", "bursts", "fastest"),
    [
        ((1, 2, 3, 4), 0, []),
        ((1, 14, 28, 42, 56), 1, [55.0]),
        ((9, 24, 39, 54, 65), 0, [56.0]),
        ((9, 24, 39, 54, 69), 0, [60.0]),
        ((9, 24, 39, 54, 69.001), 0, []),
        ((0, 50, 100, 150, 200), 0, []),
    ],
    ids=["four", "in one window", "between two windows", "exactly 60 s", "longer than 60 s", "slow"],
)
def test_sessions_find_the_five_failures_that_lie_between_two_windows(
    tmp_path: Path, gallery: Path, spark: Any, seconds: tuple[float, ...], bursts: int, fastest: list[float]
) -> None:
    trial = Trial(Project.load(gallery), "login_bursts", tmp_path / "trial", spark)
    trial.give("logins", *failures(*seconds))
    trial.end()
    assert len(trial.rows("login_bursts")) == bursts
    assert [row["fastest_five"] for row in trial.rows("attacker_sessions")] == fastest


def test_a_source_for_each_name_is_found_only_over_all_sources(tmp_path: Path, gallery: Path, spark: Any) -> None:
    trial = Trial(Project.load(gallery), "login_bursts", tmp_path / "trial", spark)
    trial.give("logins", *(line for number in range(6) for line in failures(number, source=f"10.0.0.{number}")))
    trial.end()
    assert trial.rows("login_bursts") == trial.rows("attacker_sessions") == []
    [wave] = trial.rows("attack_waves")
    assert (wave["attempts"], wave["failures"], wave["sources"], wave["success_share"]) == (6, 6, 6, 0.0)
