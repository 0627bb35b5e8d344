"""Pages of the gallery: their figures and pictures are those of plain queries, and their commands make both."""

from __future__ import annotations

import textwrap
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from gallery import plain, plain_quakes
from gallery.conftest import GALLERY
from support.projects import ROOT
from support.readme import code, page, typed

PICTURES = ROOT / "docs" / "gallery"
COMPANIES = ("AAPL", "GOOG")


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that draws."""
    monkeypatch.syspath_prepend(PICTURES)
    return import_module("draw")


def cells(*row: object) -> str:
    return f"| {' | '.join(map(str, row))} |"


FOUND = {
    "login_bursts": (plain.BURSTS, "source_ip", "window_end - INTERVAL 1 MICROSECOND"),
    "attacker_sessions": (plain.SESSIONS, "source_ip", "last_attempt"),
    "attack_waves": (plain.WAVES, "NULL AS source_ip", "last_attempt"),
}
"""For each table, its query, the source that must be that of an attack, and the last moment that a row is about."""


def test_precision_and_recall_on_the_page_are_those_of_the_files(shared_data: Path) -> None:
    database, text = plain.logins(shared_data), page("gallery/logins")
    for table, (query, source, last) in FOUND.items():
        database.execute(
            f"CREATE OR REPLACE TABLE rows AS "
            f"SELECT window_start, {source}, window_start AS first, {last} AS last FROM ({query})"
        )
        [found] = plain.rows(database, plain.FOUND)
        rows, right, attacks, known = (found[name] for name in ("rows", "inside", "attacks", "known"))
        precision, recall = f"{right / rows:.1%}".replace("%", " %"), f"{attacks / known:.1%}".replace("%", " %")
        assert cells(f"`{table}`", rows, right, attacks, precision, recall) in text


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT count(*) FROM logins", "({:,} attempts, "),
        ("SELECT count(*) FROM logins WHERE NOT success", "of which {:,} failed)"),
        ("SELECT count(*) FROM attacks", "({} attacks: "),
        ("SELECT count(*) FROM attacks WHERE source_ip NOT IN (SELECT source_ip FROM logins)", "In {} of the 111"),
        (
            "SELECT count(*) FROM (SELECT DISTINCT source_ip, time_bucket(INTERVAL 1 MINUTE, datetime) AS minute, "
            "count(*) AS n FROM logins WHERE NOT success GROUP BY ALL) WHERE n >= 5",
            "{} pairs of source and minute",
        ),
        (
            f"""SELECT count_if(NOT success) FROM logins JOIN attacks ON datetime BETWEEN start AND "end"
            WHERE start NOT IN (SELECT start FROM attacks JOIN ({plain.WAVES}) ON window_start <= "end"
            AND last_attempt >= start)""",
            "made {} failures",
        ),
    ],
)
def test_figures_in_the_text_about_logins_are_those_of_the_files(shared_data: Path, query: str, says: str) -> None:
    [[number]] = plain.logins(shared_data).execute(query).fetchall()
    assert says.format(number) in page("gallery/logins")


@pytest.mark.parametrize("gap", [10, 30])
def test_shorter_gaps_find_the_same_number_of_waves(shared_data: Path, gap: int) -> None:
    database = plain.logins(shared_data)
    for waves in (plain.WAVES, plain.WAVES.replace("INTERVAL 60 SECOND", f"INTERVAL {gap} SECOND")):
        assert database.execute(f"SELECT count(*) FROM ({waves})").fetchall() == [(110,)]


def test_figures_about_companies_are_those_of_the_files(shared_data: Path) -> None:
    database, text = the_tweets(shared_data), page("gallery/social-volume")
    table = database.execute(
        "SELECT company, format('{:,}', count(*)), count_if(z_score >= 3), count_if(z_score >= 5), "
        "format('{:.1f}', max(z_score)), arg_max(newest_at, z_score), format('{:,}', arg_max(newest, z_score)) "
        f"FROM ({plain.SCORES}) GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert [row[0] for row in table] == [*COMPANIES]
    assert [row for row in table if cells(*row) not in text] == []
    [(apple, google, all_of_them, equal)] = database.execute(
        "SELECT count_if(leader = 'AAPL'), count_if(leader = 'GOOG'), count(*), "
        f"count_if(len(ranking) = 2 AND ranking[1].tweets = ranking[2].tweets) FROM ({plain.TOP})"
    ).fetchall()
    leads = f"AAPL leads in {apple:,} of {all_of_them:,} times five minutes, GOOG in {google:,}, of which {equal}"
    assert leads in text
    for company, counts, most in database.execute(
        "SELECT company, count(*), max(value) FROM tweets GROUP BY ALL"
    ).fetchall():
        assert f"`tweets_{company}.csv` ({counts:,} counts)" in text
        assert company != "AAPL" or f"AAPL had {most:,} tweets" in text


def the_tweets(folder: Path) -> plain.duckdb.DuckDBPyConnection:
    return plain.tweets({company: folder / f"tweets_{company}.csv" for company in COMPANIES})


def the_quakes(folder: Path, batch: int = 400) -> plain.duckdb.DuckDBPyConnection:
    return plain_quakes.quakes(folder / "quakes.csv", [batch] * -(-9_332 // batch), drained=True)


def test_firings_of_earthquakes_on_the_page_are_those_of_the_file(shared_data: Path) -> None:
    database, text = the_quakes(shared_data), page("gallery/earthquakes")
    database.execute(f"CREATE TABLE rows AS {plain_quakes.FIRINGS}")
    table = database.execute(
        "WITH inserted AS (SELECT *, lead(nth) OVER (PARTITION BY region, window_start ORDER BY nth) AS next "
        "FROM rows WHERE operation = 'insert') SELECT timing, count(*), count_if(nth = 0), count_if(next > nth) "
        "FROM inserted GROUP BY timing ORDER BY timing = 'LATE', timing"
    ).fetchall()
    assert [row[0] for row in table] == ["EARLY", "ON_TIME", "LATE"]
    for timing, *numbers in table:
        [line] = [line for line in text.splitlines() if line.startswith(f"| `{timing}` |")]
        assert line.endswith(cells(*(f"{number:,}" for number in numbers)))
    [(rows, deleted, hours, batches)] = database.execute(
        "SELECT count(*), count_if(operation = 'delete'), count(DISTINCT (region, window_start)), max(batch) FROM rows"
    ).fetchall()
    assert f"So {deleted:,} rows are taken back" in text
    assert f"{rows:,} rows in all tell of {hours:,} hours" in text
    assert f"`--limit 400` makes {batches} batches" in text


def test_regions_of_earthquakes_on_the_page_are_those_of_the_file(shared_data: Path) -> None:
    database, text = the_quakes(shared_data), page("gallery/earthquakes")
    table = database.execute(
        "SELECT region, format('{:,}', a.quakes::BIGINT), hours, hours_of_three, format('{:,}', b.quakes::BIGINT), "
        "format('{:.0f} %', 100 * b.quakes / a.quakes) "
        f"FROM ({plain_quakes.REGIONS}) AS a JOIN ({plain_quakes.ON_TIME}) AS b USING (region)"
    ).fetchall()
    assert len(table) == 5
    assert [row for row in table if cells(*row) not in text] == []


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT count(*) FROM reports", "{:,} events that seismometers noticed from 18 September to 13 October"),
        ("SELECT count(*) FROM quakes", "of which {:,} are earthquakes"),
        (
            "SELECT count(*) FROM reports WHERE type = 'earthquake' AND updated - time <= 600000",
            "Only {:,} came within",
        ),
        (
            "SELECT floor(median(updated - time) / 3600000) FROM reports WHERE type = 'earthquake'",
            "half of the reports came more than {:.0f} hours after",
        ),
        (
            "SELECT max(updated - time) // 86400000 FROM reports WHERE type = 'earthquake'",
            "the last one after {} days",
        ),
        (
            "SELECT floor(median(updated - time) / 86400000) FROM quakes JOIN reports USING (position) "
            "WHERE region = 'Alaska' AND window_start BETWEEN '2018-09-24' AND '2018-09-30 23:00:00'",
            "half of Alaska's came more than {:.0f} days after the quake",
        ),
        (
            "SELECT strftime(min(happened), '%-d %B') || ' to ' || strftime(max(happened), '%-d %B %Y') FROM reports",
            "from {}",
        ),
    ],
)
def test_figures_in_the_text_about_earthquakes_are_those_of_the_file(shared_data: Path, query: str, says: str) -> None:
    [[found]] = the_quakes(shared_data).execute(query).fetchall()
    assert says.format(found) in page("gallery/earthquakes")


def test_batches_change_what_is_late_and_no_sum(shared_data: Path) -> None:
    query = (
        "SELECT count_if(timing = 'LATE' AND operation = 'insert'), "
        f"sum(CASE operation WHEN 'insert' THEN quakes ELSE -quakes END) FROM ({plain_quakes.FIRINGS})"
    )
    found = [the_quakes(shared_data, batch).execute(query).fetchone() for batch in (50, 400, 9_332)]
    (small, total), (_, same), (none, too) = (row or () for row in found)
    assert f"with batches of 50 reports, {small:,} rows would be inserted late, and in one single batch none" in page(
        "gallery/earthquakes"
    )
    assert (total, same, too, none) == (9_081, 9_081, 9_081, 0)


def test_pictures_are_those_of_the_files(shared_data: Path, draw: ModuleType) -> None:
    logins = plain.logins(shared_data)
    waves, sessions = (plain.rows(logins, query) for query in (plain.WAVES, plain.SESSIONS))
    assert draw.logins(waves, sessions) == (PICTURES / "logins.svg").read_text()
    scores = plain.rows(the_tweets(shared_data), plain.SCORES)
    assert draw.social_volume(scores) == (PICTURES / "social-volume.svg").read_text()
    firings = plain.rows(the_quakes(shared_data), plain_quakes.FIRINGS)
    assert draw.earthquakes(firings) == (PICTURES / "earthquakes.svg").read_text()


@pytest.mark.parametrize("name", ["logins", "social-volume", "earthquakes"])
def test_declarations_on_the_pages_are_parts_of_the_pipelines(name: str) -> None:
    pipelines = "".join(path.read_text() for path in sorted((GALLERY / "pipelines").glob("*.py")))
    [block] = code(f"gallery/{name}", "python")
    assert textwrap.indent(block, "    ") in pipelines


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("name", ["logins", "social-volume", "earthquakes"])
def test_commands_of_the_pages_make_the_pictures(gallery: Path, shared_data: Path, name: str) -> None:
    [script] = code(f"gallery/{name}", "sh")
    assert "~/Downloads" in script
    checkout = gallery.parents[1]
    done = typed(script.replace("~/Downloads", str(shared_data)), checkout, patience=550)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no errors, 0 warnings" in done.stdout
    assert "caught up after" in done.stdout
    made = checkout / "build" / "gallery" / f"{name}.svg"
    assert made.read_text() == (PICTURES / f"{name}.svg").read_text()
