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


def a_part(folder: Path, shared_data: Path, months: str) -> Path:
    """A folder with the attempts of months that begin like this, and with all known attacks."""
    header, *lines = (shared_data / "logins_2018.csv").read_text().splitlines(keepends=True)
    folder.mkdir()
    (folder / "logins_2018.csv").write_text("".join([header, *(line for line in lines if line.startswith(months))]))
    (folder / "hackers_2018.csv").symlink_to(shared_data / "hackers_2018.csv")
    return folder


@pytest.mark.parametrize("months", ["2018-09", pytest.param("2018", marks=pytest.mark.long)])
def test_tables_equal_plain_queries_over_the_file_wherever_batches_are_cut(
    tmp_path: Path, gallery: Path, spark: Any, shared_data: Path, months: str
) -> None:
    data = a_part(tmp_path / "data", shared_data, months)
    append(gallery, "logins", data / "logins_2018.csv", "--key", "source_ip")
    chance, limit = random.Random(16), 1_500 if "-" in months else 9_000
    mill = run_cut(gallery, spark, "login_bursts", [chance.randint(1, limit) for _ in range(3)])
    database = plain.logins(data)
    for table, query in QUERIES.items():
        found, wanted = plain.ordered(mill.published(table)), plain.ordered(plain.rows(database, query))
        assert len(wanted) > 5
        assert differences(found, wanted) == [], table


def failures(day: int, source: str, *seconds: float) -> Iterable[bytes]:
    """Attempts that fail, so many seconds after noon of a day."""
    for second in seconds:
        moment = NOON + timedelta(days=day, seconds=second)
        yield f"{moment:%Y-%m-%d %H:%M:%S.%f},{source},root,False,error_wrong_password".encode()


CASES = {
    "four": ((1, 2, 3, 4), 0, None),
    "in one window": ((1, 14, 28, 42, 56), 1, 55.0),
    "between two windows": ((9, 24, 39, 54, 65), 0, 56.0),
    "exactly 60 s": ((9, 24, 39, 54, 69), 0, 60.0),
    "longer than 60 s": ((9, 24, 39, 54, 69.001), 0, None),
    "slow": ((0, 50, 100, 150, 200), 0, None),
}
"""Seconds of failures, how many windows of a minute have five of them, and the shortest time in which five happened."""


def test_sessions_find_the_five_failures_that_lie_between_two_windows(
    tmp_path: Path, gallery: Path, spark: Any
) -> None:
    trial = Trial(Project.load(gallery), "login_bursts", tmp_path / "trial", spark)
    for day, (case, (seconds, _, _)) in enumerate(CASES.items()):
        trial.give("logins", *failures(day, case, *seconds))
    # The last attack has another source for each name: no source fails more than once.
    trial.give("logins", *(line for number in range(6) for line in failures(9, f"10.0.0.{number}", number)))
    trial.end()
    bursts = [row["source_ip"] for row in trial.rows("login_bursts")]
    assert {case: bursts.count(case) for case in CASES} == {case: windows for case, (_, windows, _) in CASES.items()}
    fastest = {row["source_ip"]: row["fastest_five"] for row in trial.rows("attacker_sessions")}
    assert fastest == {case: five for case, (_, _, five) in CASES.items() if five is not None}
    waves = [(row["failures"], row["sources"], row["success_share"]) for row in trial.rows("attack_waves")]
    assert waves == [(5, 1, 0.0)] * 5 + [(6, 6, 0.0)]
