r"""The query that recomputes page_views from the raw log: it shares no code with the pipeline that it checks.

It reads `raw_log` (partition, offset, value) and `cuts`, which says for each batch and partition what the batch read:
batch, clock, partition, from_offset, until_offset, idle. `parsed` is one row for each record and batch that read it;
`placed` adds where the record must end: rejected, late or aggregated. Lateness depends on batches: the watermark
that decides is computed again from the records of earlier batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

_QUOTED = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_CUT = r'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?'
_TAIL = rf"(?: (?:{_QUOTED}(?: (?:{_QUOTED}|{_CUT}))?|{_CUT}))?"
LINE = rf"(?s)\A([^ ]+) [^ ]+ [^ ]+ \[([^\]]*)\] {_QUOTED} ([0-9]{{3}})(?: ([0-9]+|-){_TAIL})?\z"
"""Client, time, request, status and bytes of a line in the common or combined format, also if cut after its status."""

_REQUEST = r"(?s)\A([^ ]+) (.+?)(?: HTTP/[0-9.]+)?\z"
_TIME = r"\A[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4}\z"
_TOKENS = r'(?s)\\x[0-9a-fA-F]{2}|\\["\\bnrtv]|.'


def _unescaped(text: str) -> str:
    """A path as the client sent it: the server's escapes are undone if the result is valid text."""
    octets = (
        r"CASE WHEN length(t) = 4 THEN substr(t, 3) WHEN length(t) = 1 THEN hex(encode(t, 'UTF-8')) "
        r"""ELSE CASE substr(t, 2) WHEN '"' THEN '22' WHEN 'b' THEN '08' WHEN 'n' THEN '0A' WHEN 'r' THEN '0D' """
        r"WHEN 't' THEN '09' WHEN 'v' THEN '0B' ELSE '5C' END END"
    )
    joined = f"array_join(transform(regexp_extract_all({text}, r'{_TOKENS}', 0), t -> {octets}), '')"
    put_back = f"coalesce(try_validate_utf8(CAST(unhex({joined}) AS STRING)), {text})"
    return rf"CASE WHEN instr({text}, r'\') = 0 THEN {text} ELSE {put_back} END"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings of page_views about time."""

    delay: timedelta
    allowed_lateness: timedelta
    future_tolerance: timedelta


def parsed(rules: Rules) -> str:
    """The query for `parsed`."""
    return rf"""
    WITH texts AS (
      SELECT c.batch, c.clock, r.partition, r.offset,
             regexp_replace(try_validate_utf8(CAST(r.value AS STRING)), r'[ \t\r\n]+\z', '') AS line
      FROM raw_log r
      LEFT JOIN cuts c
        ON r.partition = c.partition AND r.offset >= c.from_offset AND r.offset < c.until_offset
    ), parts AS (
      SELECT *, line RLIKE r'{LINE}' AND NOT line RLIKE r'[\r\n]' AS fits,
             regexp_extract(line, r'{LINE}', 1) AS client,
             regexp_extract(line, r'{LINE}', 2) AS time,
             regexp_extract(line, r'{LINE}', 3) AS request,
             CAST(nullif(regexp_extract(line, r'{LINE}', 4), '') AS INT) AS status,
             regexp_extract(line, r'{LINE}', 5) AS size
      FROM texts
    ), words AS (
      SELECT *, regexp_extract(request, r'{_REQUEST}', 1) AS method,
             regexp_extract(request, r'{_REQUEST}', 2) AS target,
             CASE WHEN time RLIKE r'{_TIME}' THEN try_to_timestamp(time, 'dd/MMM/yyyy:HH:mm:ss Z') END AS ts,
             try_cast(nullif(nullif(size, '-'), '') AS BIGINT) AS bytes
      FROM parts
    ), paths AS (
      SELECT *, {_unescaped("target")} AS path FROM words
    )
    SELECT batch, partition, offset, client, ts, status, bytes, substring_index(path, '?', 1) AS page,
           coalesce(fits AND ts <= clock + {_interval(rules.future_tolerance)}
             AND length(method) BETWEEN 1 AND 32 AND length(path) BETWEEN 1 AND 8192
             AND status BETWEEN 100 AND 599 AND (bytes IS NOT NULL OR size IN ('-', '')), false) AS valid
    FROM paths"""


def placed(rules: Rules) -> str:
    """The query for `placed`."""
    return f"""
    WITH newest AS (
      SELECT batch, partition, max(ts) AS newest FROM parsed WHERE valid GROUP BY batch, partition
    ), clocks AS (
      SELECT c.batch, c.idle,
             max(newest) OVER (PARTITION BY c.partition ORDER BY c.batch) - {_interval(rules.delay)} AS clock
      FROM cuts c LEFT JOIN newest n ON c.batch = n.batch AND c.partition = n.partition
    ), moves AS (
      SELECT batch, CASE WHEN count_if(clock IS NULL AND NOT idle) = 0
                         THEN min(clock) FILTER (WHERE NOT idle) END AS moved
      FROM clocks GROUP BY batch
    ), watermarks AS (
      SELECT batch, max(moved) OVER (ORDER BY batch ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS watermark
      FROM moves
    )
    SELECT p.*, date_trunc('MINUTE', ts) AS minute,
           CASE WHEN p.batch IS NULL THEN 'unread'
                WHEN NOT valid THEN 'rejected'
                WHEN date_trunc('MINUTE', ts) + INTERVAL '1' MINUTE + {_interval(rules.allowed_lateness)} <= watermark
                  THEN 'late'
                ELSE 'aggregated' END AS outcome
    FROM parsed p LEFT JOIN watermarks w ON p.batch = w.batch"""


WINDOWS = """
    SELECT minute AS window_start, minute + INTERVAL '1' MINUTE AS window_end, page,
           count(*) AS requests,
           CASE WHEN sum(CAST(bytes AS DECIMAL(38, 0))) > 9223372036854775807BD THEN 9223372036854775807L
                ELSE try_sum(bytes) END AS bytes,
           hll_sketch_estimate(hll_union(hll_sketch_agg(client, 12), hll_sketch_agg(client, 12))) AS visitors,
           count_if(status DIV 100 = 2) AS status_2xx, count_if(status DIV 100 = 3) AS status_3xx,
           count_if(status DIV 100 = 4) AS status_4xx, count_if(status DIV 100 = 5) AS status_5xx
    FROM placed WHERE outcome = 'aggregated' GROUP BY minute, page"""
"""The rows that the published table must have."""

SIDE_OUTPUTS = "SELECT partition, offset, outcome FROM placed WHERE outcome <> 'aggregated'"
"""The records that must not be in any window."""


def _interval(length: timedelta) -> str:
    return f"INTERVAL '{length.total_seconds():.6f}' SECOND"
