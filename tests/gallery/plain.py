"""What the pipelines of the gallery publish, as plain queries over the files. They share no code with the pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

Rows = list[dict[str, Any]]

BURSTS = """
SELECT start AS window_start, start + INTERVAL 60 SECOND AS window_end, source_ip,
       count(*) AS failures, count(DISTINCT username) AS usernames
FROM (
    SELECT *, time_bucket(INTERVAL 10 SECOND, datetime) - k * INTERVAL 10 SECOND AS start
    FROM logins, range(6) AS steps(k)
    WHERE NOT success
)
GROUP BY ALL
HAVING count(*) >= 5
"""

_NUMBERED = """
SELECT *, sum(opens) OVER (PARTITION BY {key} ORDER BY datetime) AS session
FROM (
    SELECT *, coalesce(datetime - lag(datetime) OVER (PARTITION BY {key} ORDER BY datetime) > INTERVAL 60 SECOND, true)
        ::INT AS opens
    FROM logins
)
"""

_OF_SESSION = """
    min(datetime) AS window_start, max(datetime) + INTERVAL 60 SECOND AS window_end,
    count(*) AS attempts, count_if(NOT success) AS failures, count(DISTINCT username) AS usernames,
    max(datetime) AS last_attempt, count_if(success) / count(*) AS success_share
"""

SESSIONS = f"""
WITH numbered AS ({_NUMBERED.format(key="source_ip")}),
fives AS (
    SELECT source_ip, session,
           datetime - lag(datetime, 4) OVER (PARTITION BY source_ip, session ORDER BY datetime) AS took
    FROM numbered WHERE NOT success
),
fastest AS (SELECT source_ip, session, epoch_us(min(took)) / 1e6 AS fastest_five FROM fives GROUP BY ALL)
SELECT source_ip, {_OF_SESSION}, any_value(fastest_five) AS fastest_five
FROM numbered JOIN fastest USING (source_ip, session)
GROUP BY source_ip, session
HAVING any_value(fastest_five) <= 60
"""

WAVES = f"""
SELECT {_OF_SESSION}, count(DISTINCT source_ip) AS sources
FROM ({_NUMBERED.format(key="1")})
GROUP BY session
HAVING count_if(NOT success) >= 5
"""

TOP = """
SELECT time_bucket(INTERVAL 5 MINUTE, timestamp) AS window_start,
       time_bucket(INTERVAL 5 MINUTE, timestamp) + INTERVAL 5 MINUTE AS window_end,
       arg_max(company, (value, company)) AS leader,
       list({'tweets': value, 'company': company} ORDER BY value DESC, company DESC) AS ranking
FROM tweets
GROUP BY ALL
"""

SCORES = """
WITH ends AS (
    SELECT company, value AS newest, timestamp AS newest_at,
           time_bucket(INTERVAL 5 MINUTE, timestamp) + INTERVAL 5 MINUTE AS window_end
    FROM tweets
),
days AS (
    SELECT e.*, window_end - INTERVAL 1 DAY AS window_start, count(*) AS counts, avg(value) AS mean,
           stddev_samp(value) AS deviation
    FROM ends AS e
    JOIN tweets AS t ON t.company = e.company AND timestamp >= window_end - INTERVAL 1 DAY AND timestamp < window_end
    GROUP BY ALL
)
SELECT *, (newest - mean) / deviation AS z_score FROM days WHERE counts >= 144 AND deviation > 0
"""

FOUND = """
WITH found AS (SELECT * FROM rows),
pairs AS (
    SELECT f.window_start AS row_start, f.source_ip AS row_source, a.start AS attack
    FROM found AS f JOIN attacks AS a
    ON (f.source_ip IS NULL OR f.source_ip = a.source_ip) AND f.first <= a."end" AND f.last >= a.start
)
SELECT (SELECT count(*) FROM found) AS rows,
       (SELECT count(*) FROM (SELECT DISTINCT row_start, row_source FROM pairs)) AS inside,
       (SELECT count(DISTINCT attack) FROM pairs) AS attacks,
       (SELECT count(*) FROM attacks) AS known
"""


def logins(folder: Path) -> duckdb.DuckDBPyConnection:
    """A database with the attempts and the known attacks."""
    database = duckdb.connect()
    types = "{'datetime': 'TIMESTAMP', 'source_ip': 'VARCHAR', 'username': 'VARCHAR', 'success': 'BOOLEAN'}"
    database.execute(f"CREATE TABLE logins AS FROM read_csv('{folder}/logins_2018.csv', types={types})")
    database.execute(f"CREATE TABLE attacks AS FROM read_csv('{folder}/hackers_2018.csv')")
    return database


def tweets(files: Mapping[str, Path]) -> duckdb.DuckDBPyConnection:
    """A database with the counts of all companies; `files` are by company."""
    database = duckdb.connect()
    parts = [f"SELECT *, '{company}' AS company FROM read_csv('{file}')" for company, file in files.items()]
    database.execute(f"CREATE TABLE tweets AS {' UNION ALL '.join(parts)}")
    return database


def rows(database: duckdb.DuckDBPyConnection, query: str) -> Rows:
    """What a query gives. Its times are in UTC and have that zone."""
    return fetched(database.execute(query))


def fetched(found: duckdb.DuckDBPyConnection) -> Rows:
    """What a query has given."""
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, map(_zoned, row), strict=True)) for row in found.fetchall()]


def _zoned(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def ordered(found: Iterable[Mapping[str, Any]]) -> Rows:
    """Rows by window and key, their columns by name."""
    named = [dict(sorted(row.items())) for row in found]
    return sorted(named, key=lambda r: (r["window_start"], r.get("source_ip", ""), r.get("company", "")))
