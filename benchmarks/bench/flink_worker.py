"""Runs jobs of Flink SQL, one for each line of its input, in the environment that `bench.flink` makes.

python flink_worker.py   with a request in each line: {"log": FOLDER, "out": FOLDER}

It prints `READY`, and for each request a line `DONE` with the seconds that Flink counts for the job, from the moment
its cluster runs it to its last row in `out`: without the start of Java and of the cluster, and without planning SQL.
"""

from __future__ import annotations

import json
import sys
from typing import Any

SLOTS = 2
RECORDS = """
CREATE TEMPORARY TABLE records_{n} (
    ts TIMESTAMP_LTZ(3), `user` STRING, status INT, `bytes` BIGINT, ms BIGINT,
    WATERMARK FOR ts AS ts - INTERVAL '10' SECOND
) WITH (
    'connector' = 'filesystem', 'path' = 'file://{log}', 'format' = 'json',
    'json.timestamp-format.standard' = 'ISO-8601'
)
"""
REQUESTS = "CREATE TEMPORARY VIEW requests_{n} AS SELECT * FROM records_{n} WHERE status < 500"
COUNTS = """
CREATE TEMPORARY TABLE counts_{n} (
    window_start TIMESTAMP(3), `user` STRING, requests BIGINT, `bytes` BIGINT, slowest_ms BIGINT
) WITH ('connector' = 'filesystem', 'path' = 'file://{out}', 'format' = 'json')
"""
COUNT = """
INSERT INTO counts_{n}
SELECT window_start, `user`, COUNT(*), SUM(`bytes`), MAX(ms)
FROM TABLE(TUMBLE(TABLE requests_{n}, DESCRIPTOR(ts), INTERVAL '10' SECONDS))
GROUP BY window_start, window_end, `user`
"""


def main() -> None:
    """Answer requests until the input ends."""
    tables = _environment()
    print("READY", flush=True)
    for number, line in enumerate(sys.stdin):
        for statement in (RECORDS, REQUESTS, COUNTS):
            tables.execute_sql(statement.format(n=number, **json.loads(line)))
        job = tables.execute_sql(COUNT.format(n=number)).get_job_client()
        print(f"DONE {job.get_job_execution_result().result().get_net_runtime() / 1000}", flush=True)


def _environment() -> Any:
    """Flink in this process, with a slot for each core. Jobs end with their files, and take no checkpoints."""
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    conf = Configuration()
    conf.set_string("parallelism.default", str(SLOTS))
    conf.set_string("taskmanager.numberOfTaskSlots", str(SLOTS))
    conf.set_string("table.local-time-zone", "UTC")
    return TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(conf).build()
    )


if __name__ == "__main__":
    main()
