"""A program for tests: runs DAGs in an Airflow of its own, and writes down what Airflow remembers of them.

    python airflow_session.py DAGS_FOLDER ANSWER '[["page_views", {"max_batches": 2}], ["page_views", {}]]'

Each pair is a DAG and the configuration of one run. ANSWER is the file, of JSON, that is written.
"""

from __future__ import annotations

import faulthandler
import json
import sys
from pathlib import Path
from typing import Any

from airflow.dag_processing.dagbag import DagBag
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.db import initdb
from airflow.utils.session import create_session
from sqlalchemy import select


def main(dags_folder: str, runs: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    initdb()
    bag = DagBag(dags_folder)
    if bag.import_errors:
        return {"import_errors": bag.import_errors}
    states = [str(bag.dags[dag_id].test(run_conf=conf).state) for dag_id, conf in runs]
    with create_session() as session:
        tasks = session.scalars(select(TaskInstance).order_by(TaskInstance.start_date))
        events = session.execute(select(AssetModel.name, AssetEvent).join(AssetEvent.asset).order_by(AssetEvent.id))
        links = session.execute(select(XComModel.key, XComModel.value).where(XComModel.key.startswith("_link_")))
        results = session.scalars(select(XComModel.value).where(XComModel.key == "return_value"))
        return {
            "runs": states,
            "tasks": [
                {
                    "dag": task.dag_id,
                    "task": task.task_id,
                    "state": task.state,
                    "tries": task.try_number,
                    "pool": task.pool,
                }
                for task in tasks
            ],
            "events": [
                {"asset": name, "partition": event.partition_key, "extra": event.extra} for name, event in events
            ],
            "links": [list(row) for row in links],
            "results": [json.loads(value) if isinstance(value, str) else value for value in results],
        }


PATIENCE = 500.0
"""Seconds until a process that waits for something says where, and ends."""

if __name__ == "__main__":
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    Path(sys.argv[2]).write_text(json.dumps(main(sys.argv[1], json.loads(sys.argv[3]))))
