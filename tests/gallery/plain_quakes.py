"""What the pipeline of earthquakes publishes in each batch, as plain queries over the file.

They share no code with the pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import duckdb

_REPORTS = """
CREATE TABLE reports AS
SELECT *, row_number() OVER (ORDER BY updated) AS position, make_timestamp("time" * 1000) AS happened
FROM read_csv('{file}', types = {{'time': 'BIGINT', 'updated': 'BIGINT', 'mag': 'DOUBLE'}})
"""

_BATCHES = """
CREATE TABLE batches AS
SELECT batch, after, until, max(happened) - INTERVAL 10 MINUTE AS watermark
FROM cuts JOIN reports ON position <= until
GROUP BY ALL
"""

_QUAKES = """
CREATE TABLE quakes AS
WITH named AS (
    SELECT *, rtrim(regexp_replace(place, '^.*, ', '')) AS short, date_trunc('hour', happened) AS window_start
    FROM reports JOIN cuts ON position > after AND position <= until
    WHERE type = 'earthquake'
)
SELECT coalesce(map {'CA': 'California', 'NV': 'Nevada', 'MX': 'Mexico'}[short], short) AS region,
       window_start, window_start + INTERVAL 1 HOUR AS window_end, batch, position, mag,
       make_timestamp(updated * 1000) AS reported_at
FROM named
"""

HOURS = """
SELECT region, window_start, count(*) AS quakes, max(mag) AS strongest FROM quakes GROUP BY region, window_start
"""
"""Each region and hour, by all reports."""

REGIONS = f"""
SELECT region, sum(quakes) AS quakes, count(*) AS hours, count_if(strongest >= 3) AS hours_of_three
FROM ({HOURS}) GROUP BY region ORDER BY quakes DESC, region LIMIT 5
"""
"""The five regions with the most earthquakes."""

KNOWN = """
WITH numbered AS (
    SELECT *, row_number() OVER (PARTITION BY region, window_start ORDER BY position) AS n,
           count(*) OVER (PARTITION BY region, window_start) AS reports
    FROM quakes WHERE batch <= $batch
)
SELECT region, window_start, count(*) AS quakes, max(mag) AS strongest
FROM numbered
WHERE window_end <= (SELECT watermark FROM batches WHERE batch = $batch) OR n <= reports // 5 * 5
GROUP BY region, window_start
"""
"""What is known after a batch: all reports of hours that have ended, and of others the first five, ten, and so on."""

FIRINGS = """
WITH closing AS (
    SELECT q.*, (SELECT min(b.batch) FROM batches AS b WHERE b.watermark >= window_end) AS closes
    FROM quakes AS q
),
counted AS (
    SELECT region, window_start, window_end, batch, closes, reported_at,
           count(*) OVER so_far AS quakes, max(mag) OVER so_far AS strongest, avg(mag) OVER so_far AS mean
    FROM closing
    WINDOW so_far AS (PARTITION BY region, window_start ORDER BY position)
),
fired AS (
    SELECT * EXCLUDE closes, 'EARLY' AS timing FROM counted
    WHERE (closes IS NULL OR batch <= closes) AND quakes % 5 = 0
    UNION ALL
    SELECT * EXCLUDE closes REPLACE (closes AS batch), 'ON_TIME' FROM counted WHERE batch <= closes
    QUALIFY quakes = max(quakes) OVER (PARTITION BY region, window_start)
    UNION ALL
    SELECT * EXCLUDE closes, 'LATE' FROM counted WHERE batch > closes
),
numbered AS (
    SELECT *, row_number() OVER in_order - 1 AS nth,
           lead(timing) OVER in_order AS next, lead(batch) OVER in_order AS taken
    FROM fired
    WINDOW in_order AS (PARTITION BY region, window_start ORDER BY quakes, timing = 'ON_TIME')
)
SELECT * EXCLUDE (next, taken), 'insert' AS operation FROM numbered
UNION ALL
SELECT * EXCLUDE (next, taken) REPLACE (nth + 1 AS nth, next AS timing, taken AS batch), 'delete' FROM numbered
WHERE next IS NOT NULL
"""
"""All rows, each with its batch. Until the end of its hour, a region's quakes are told at each fifth; then all of them;
then each one that is reported. The row before is taken back each time."""


ON_TIME = f"""
WITH not_late AS (
    SELECT region, arg_max(quakes, nth) AS quakes FROM ({FIRINGS})
    WHERE operation = 'insert' AND timing != 'LATE' GROUP BY region, window_start
)
SELECT region, sum(quakes) AS quakes FROM not_late GROUP BY region
"""
"""How many earthquakes of each region the last rows of hours tell that are not late."""


def quakes(file: Path, batches: Sequence[int], *, drained: bool) -> duckdb.DuckDBPyConnection:
    """A database with the reports of a file in the order of `updated`, and the batches, which read so many of them."""
    database = duckdb.connect()
    ends = list(accumulate(batches))
    database.execute("CREATE TABLE cuts (batch INTEGER, after INTEGER, until INTEGER)")
    database.executemany(
        "INSERT INTO cuts VALUES (?, ?, ?)", list(zip(range(1, len(ends) + 1), [0, *ends], ends, strict=False))
    )
    for statement in (_REPORTS.format(file=file), _BATCHES, _QUAKES):
        database.execute(statement)
    if drained:
        database.execute("UPDATE batches SET watermark = 'infinity' WHERE batch = ?", [len(ends)])
    return database
