"""Runs jobs of Flink SQL, one for each line of its input, in the environment that `bench.flink` makes.

python flink_worker.py   with a request in each line: {"create": {NAME: SQL, ...}, "insert": [SQL, ...]}

It prints `READY`, and for each request a line `DONE` with the seconds that Flink counts for the job, from the moment
its cluster runs it to its last row: without the start of Java and of the cluster, and without planning SQL. The tables
of a request are temporary.
"""

from __future__ import annotations

import json
import sys
from typing import Any

SLOTS = 2


def main() -> None:
    """Answer requests until the input ends."""
    tables = _environment()
    print("READY", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        for statement in request["create"].values():
            tables.execute_sql(statement)
        job = tables.create_statement_set()
        for statement in request["insert"]:
            job.add_insert_sql(statement)
        done = job.execute().get_job_client().get_job_execution_result().result()
        for name in request["create"]:
            tables.execute_sql(f"DROP TEMPORARY TABLE {name}")
        print(f"DONE {done.get_net_runtime() / 1000}", flush=True)


def _environment() -> Any:
    """Flink in this process, with a slot for each core. Jobs end with their files, and take no checkpoints."""
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    conf = Configuration()
    conf.set_string("parallelism.default", str(SLOTS))
    conf.set_string("taskmanager.numberOfTaskSlots", str(SLOTS))
    conf.set_string("table.local-time-zone", "UTC")
    # A few hundredths faster. Mini-batches are not for functions of windows, which collect records anyway.
    conf.set_string("pipeline.object-reuse", "true")
    return TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(conf).build()
    )


if __name__ == "__main__":
    main()
