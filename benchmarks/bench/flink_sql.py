"""The workloads in Flink SQL: a table of the records of a round, and the query of each published table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.access_log import CLASSES, LINE, PAGE_VIEWS
from bench.workload import Workload
from bench.workloads import BENCH, SLIDING, WIDE, WIDE_KEYS

_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("window_start", "window_end"), "TIMESTAMP(3)"),
    **dict.fromkeys(("user", "name", "key", "page"), "STRING"),
}
"""Of the columns of workloads; all others are numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkSql:
    """`columns` and `format` are those of the table `records`; each query gives the columns of the workload."""

    columns: str
    format: str
    queries: tuple[str, ...]

    def created(self, workload: Workload, log: str, out: str) -> dict[str, str]:
        """The statements that create the tables of a round, by their names: of its records, and of the rows of each."""
        columns = ", ".join(f"`{name}` {_TYPES.get(name, 'BIGINT')}" for name in workload.columns)
        made = {"records": f"({self.columns}) WITH ({_files(log)}, {self.format})"}
        for number in range(len(self.queries)):
            made[f"rows_{number}"] = f"({columns}) WITH ({_files(f'{out}/{number}')}, 'format' = 'json')"
        return {name: f"CREATE TEMPORARY TABLE {name} {rest}" for name, rest in made.items()}

    def inserted(self) -> list[str]:
        """The statements that fill these tables, as one job."""
        return [f"INSERT INTO rows_{number} {query}" for number, query in enumerate(self.queries)]


def is_number(column: str) -> bool:
    """Whether a column of a workload is a number."""
    return column not in _TYPES


def _files(folder: str) -> str:
    return f"'connector' = 'filesystem', 'path' = 'file://{folder}'"


def _of_json(*queries: str, page: str = "") -> FlinkSql:
    columns = f"ts TIMESTAMP_LTZ(3), `user` STRING, {page}status INT, `bytes` BIGINT, ms BIGINT"
    return FlinkSql(
        columns=f"{columns}, WATERMARK FOR ts AS ts - INTERVAL '10' SECOND",
        format="'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'",
        queries=queries,
    )


_TUMBLE = "TABLE(TUMBLE(TABLE records, DESCRIPTOR(ts), INTERVAL '10' SECONDS)) WHERE status < 500"
_HOP = "TABLE(HOP(TABLE records, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR))"


def _counts(windows: str, *, key: str = "user", shown: str = "window_start, window_end, `user`") -> str:
    totals = "COUNT(*), SUM(`bytes`), MAX(ms)"
    return f"SELECT {shown}, {totals} FROM {windows} GROUP BY window_start, window_end, `{key}`"


def _keyed(key: str) -> str:
    return _counts(_TUMBLE, key=key, shown=f"'{key}', CAST(`{key}` AS STRING), window_start, window_end")


def _part(number: int) -> str:
    return f"REGEXP_EXTRACT(line, '{LINE}', {number})"


_SECONDS = f"COALESCE(UNIX_TIMESTAMP({_part(2)}, 'dd/MMM/yyyy:HH:mm:ss Z'), 0)"
_FROM, _UNTIL = 946_684_800, 4_070_908_800
"""The first seconds of 2000 and of 2099. A line from the far future would end all windows before it, so it becomes one
of the far past, which is left out."""

_CLASSES = ", ".join(f"COUNT(*) FILTER (WHERE status / 100 = {kind[0]})" for kind in CLASSES)
_LINES = f"""(
    SELECT window_start, window_end, SPLIT_INDEX({_part(4)}, '?', 0) AS page,
        CAST({_part(5)} AS INT) AS status, TRY_CAST({_part(6)} AS BIGINT) AS `bytes`
    FROM TABLE(TUMBLE(TABLE records, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    WHERE ts > TO_TIMESTAMP_LTZ({_FROM}, 0)
)"""

FLINK: Mapping[str, FlinkSql] = {
    BENCH.name: _of_json(_counts(_TUMBLE)),
    SLIDING.name: _of_json(_counts(_HOP)),
    WIDE.name: _of_json(*map(_keyed, WIDE_KEYS), page="page STRING, "),
    PAGE_VIEWS.name: FlinkSql(
        columns=f"""line STRING,
            ts AS TO_TIMESTAMP_LTZ(MOD({_SECONDS}, {_UNTIL}), 0),
            WATERMARK FOR ts AS ts - INTERVAL '61' MINUTE""",
        format="'format' = 'raw'",
        queries=(
            f"SELECT window_start, window_end, page, COUNT(*), COALESCE(SUM(`bytes`), 0), {_CLASSES} "
            # Flink reads bytes that are no UTF-8 as this character. The others reject such lines; only paths have them.
            f"FROM {_LINES} WHERE POSITION('\N{REPLACEMENT CHARACTER}' IN page) = 0 "
            "GROUP BY window_start, window_end, page",
        ),
    ),
}
"""By the name of the workload. Of `page_views`, visitors are left out: a stream of Flink cannot estimate them."""
