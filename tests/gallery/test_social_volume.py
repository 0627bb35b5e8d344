"""Volume of companies: rankings and scores equal plain queries, however batches cut the log."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from gallery import plain
from gallery.conftest import append, differences, run_cut
from tidemill.project.project import Project
from tidemill.testing.trial import Trial

pytestmark = pytest.mark.spark

COMPANIES = ("AAPL", "GOOG")


@pytest.mark.parametrize("rows", [300, pytest.param(3_000, marks=pytest.mark.long)])
def test_tables_equal_plain_queries_over_the_files_wherever_batches_are_cut(
    tmp_path: Path, gallery: Path, spark: Any, shared_data: Path, rows: int
) -> None:
    files = {}
    for company in COMPANIES:
        lines = (shared_data / f"tweets_{company}.csv").read_text().splitlines(keepends=True)
        files[company] = tmp_path / f"{company}.csv"
        files[company].write_text("".join(lines[: rows + 1]))
        append(gallery, f"tweets.{company}", files[company])
    chance = random.Random(16)
    mill = run_cut(gallery, spark, "social_volume", [chance.randint(1, rows // 2) for _ in range(4)])
    database = plain.tweets(files)
    for table, query in (("top_companies", plain.TOP), ("volume_scores", plain.SCORES)):
        found, wanted = plain.ordered(mill.published(table)), plain.ordered(plain.rows(database, query))
        assert len(wanted) > rows / 2
        assert differences(found, wanted) == [], table


def test_counts_of_one_company_are_added_and_ranked_with_the_others(tmp_path: Path, gallery: Path, spark: Any) -> None:
    trial = Trial(Project.load(gallery), "social_volume", tmp_path / "trial", spark)
    for company, counts in (("X", (3, 4)), ("Y", (5,)), ("Z", (7,))):
        trial.give(f"tweets.{company}", *(f"2015-03-01 10:0{n}:53,{v}".encode() for n, v in enumerate(counts)))
    trial.give("tweets.X", b"2015-03-01 10:05:00,1")
    trial.end()
    first, second = trial.rows("top_companies")
    assert [(each["company"], each["tweets"]) for each in first["ranking"]] == [("Z", 7), ("X", 7), ("Y", 5)]
    assert (first["leader"], second["leader"], len(second["ranking"])) == ("Z", "X", 1)
    assert trial.rows("volume_scores") == []
