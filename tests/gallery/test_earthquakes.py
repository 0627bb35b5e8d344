"""Earthquakes: after every batch, what is inserted minus what is deleted is what a plain query knows by then."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gallery import plain, plain_quakes
from gallery.conftest import append, differences, run_cut
from support.projects import Mill, rows_of
from support.readme import code
from tidemill.project.project import Project
from tidemill.testing.trial import Trial

pytestmark = pytest.mark.spark

NET = """
SELECT region, window_start, sum(CASE operation WHEN 'insert' THEN quakes ELSE -quakes END)::BIGINT AS quakes,
       max(strongest) FILTER (operation = 'insert') AS strongest
FROM found GROUP BY region, window_start
"""
"""What is inserted minus what is deleted. More reports make no hour weaker, so `strongest` needs no subtraction."""
NOON = 1_538_395_200_000
"""2018-10-01 12:00 UTC, in milliseconds since 1970."""


def in_order(file: Path, shared_data: Path, count: int) -> int:
    """Write the first reports by `updated` with the header, and say how many there are."""
    header, *lines = (shared_data / "quakes.csv").read_text().splitlines(keepends=True)
    first = sorted(lines, key=lambda line: int(line.split(",")[3]))[:count]
    file.write_text("".join([header, *first]))
    return len(first)


def published(mill: Mill) -> plain.Rows:
    """The rows of the table with the batch that wrote each, in an order of their own."""
    rows = rows_of(mill.project.published_uri("quake_hours"))
    named = [{"batch": row.pop("batch_id"), **row} for row in rows]
    return in_their_order([{name: value for name, value in row.items() if name != "published_at"} for row in named])


def in_their_order(rows: plain.Rows) -> plain.Rows:
    """Rows by region, hour and firing, their columns by name."""
    named = [dict(sorted(row.items())) for row in rows]
    return sorted(named, key=lambda r: (r["region"], r["window_start"], r.get("nth"), r.get("operation")))


def asked(found: plain.Rows, query: str) -> plain.Rows:
    """What a query over published rows gives; it calls them `found` or `quake_hours`."""
    utc = [{name: _in_utc(value) for name, value in row.items()} for row in found]
    database = plain.duckdb.connect()
    for name in ("found", "quake_hours"):
        database.register(name, pa.Table.from_pylist(utc))
    return plain.rows(database, query)


def _in_utc(value: Any) -> Any:
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


@pytest.mark.parametrize("reports", [900, pytest.param(10_000, marks=pytest.mark.long)])
def test_after_every_batch_inserted_minus_deleted_is_what_is_known_and_in_the_end_all_of_it(
    tmp_path: Path, gallery: Path, spark: Any, shared_data: Path, reports: int
) -> None:
    file, chance = tmp_path / "quakes.csv", random.Random(16)
    total = in_order(file, shared_data, reports)
    append(gallery, "quakes", file)
    limits = [chance.randint(1, total // 3) for _ in range(3)]
    batches = [*limits, total - sum(limits)]
    mill = Mill(Project.load(gallery), spark, "earthquakes")
    before = plain_quakes.quakes(file, batches, drained=False)
    for number, limit in enumerate(limits, start=1):
        mill.run(limit=limit)
        known = before.execute(plain_quakes.KNOWN, {"batch": number})
        found = asked(published(mill), NET)
        assert len(found) > 20
        assert differences(in_their_order(found), in_their_order(plain.fetched(known))) == [], number
    rows = published(run_cut(gallery, spark, "earthquakes", []))
    after = plain_quakes.quakes(file, batches, drained=True)
    assert differences(in_their_order(asked(rows, NET)), in_their_order(plain.rows(after, plain_quakes.HOURS))) == []
    assert differences(rows, in_their_order(plain.rows(after, plain_quakes.FIRINGS))) == []
    assert {(row["timing"], row["operation"]) for row in rows} == {
        (timing, operation) for timing in ("EARLY", "ON_TIME", "LATE") for operation in ("insert", "delete")
    }
    [query] = code("gallery/earthquakes", "sql")
    assert asked(rows, query) == plain.rows(after, plain_quakes.REGIONS)


def a_report(minute: float, place: str, magnitude: float | None = 1.0, kind: str = "earthquake") -> bytes:
    """A report of an event so many minutes after noon; it is reported a minute later."""
    happened = NOON + round(minute * 60_000)
    size = "" if magnitude is None else str(magnitude)
    return f'ci,1,{happened},{happened + 60_000},{size},ml,"{place}",,1,automatic,0,{kind},-480.0'.encode()


def test_an_hour_is_told_early_on_time_and_for_each_late_report_and_regions_have_one_name(
    tmp_path: Path, gallery: Path, spark: Any
) -> None:
    trial = Trial(Project.load(gallery), "earthquakes", tmp_path / "trial", spark)
    five = [a_report(minute, "9km NE of Aguanga, CA", minute) for minute in (1, 2, 3, 4, 5)]
    trial.give("quakes", *five, a_report(6, "Quarry, CA", 2.0, "quarry blast"), a_report(7, "Fiji region", None))
    trial.run()
    # The last moment at which the hour is open: the watermark is 10 minutes behind.
    trial.give("quakes", a_report(69.99, "1km N of Elko, NV"))
    trial.run()
    trial.give("quakes", a_report(70, "Ensenada, B.C., MX"))
    trial.run()
    trial.give("quakes", a_report(59, "Petrolia, California", 4.5), a_report(59.5, "2km S of Elko, Nevada"))
    trial.end()
    rows = in_their_order(trial.rows("quake_hours"))
    columns = ("region", "timing", "operation", "quakes", "strongest", "mean")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("California", "EARLY", "insert", 5, 5.0, 3.0),
        ("California", "ON_TIME", "delete", 5, 5.0, 3.0),
        ("California", "ON_TIME", "insert", 5, 5.0, 3.0),
        ("California", "LATE", "delete", 5, 5.0, 3.0),
        ("California", "LATE", "insert", 6, 5.0, 3.25),
        ("Fiji region", "ON_TIME", "insert", 1, None, None),
        ("Mexico", "ON_TIME", "insert", 1, 1.0, 1.0),
        ("Nevada", "LATE", "insert", 1, 1.0, 1.0),
        ("Nevada", "ON_TIME", "insert", 1, 1.0, 1.0),
    ]
    assert trial.rejected() == trial.late() == []
