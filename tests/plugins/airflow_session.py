"""A program for tests: runs a project's DAG in an Airflow of its own, and prints what Airflow remembers of it.

    python airflow_session.py DAGS_FOLDER DAG_ID '[{"max_batches": 2}, {}]'

Each element of the list is the configuration of one run. The last line of standard output is JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from airflow.dag_processing.dagbag import DagBag
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.db import initdb
from airflow.utils.session import create_session
from sqlalchemy import select


def main(dags_folder: str, dag_id: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    initdb()
    bag = DagBag(dags_folder)
    if bag.import_errors:
        return {"import_errors": bag.import_errors}
    states = [str(bag.dags[dag_id].test(run_conf=conf).state) for conf in runs]
    with create_session() as session:
        tasks = session.scalars(select(TaskInstance).order_by(TaskInstance.start_date))
        events = session.execute(select(AssetModel.name, AssetEvent).join(AssetEvent.asset).order_by(AssetEvent.id))
        results = session.scalars(select(XComModel.value).where(XComModel.key == "return_value"))
        return {
            "runs": states,
            "tasks": [
                {"state": task.state, "pool": task.pool, "weight": task.priority_weight, "tries": task.try_number}
                for task in tasks
            ],
            "events": [
                {"asset": name, "partition": event.partition_key, "extra": event.extra} for name, event in events
            ],
            "results": [json.loads(value) if isinstance(value, str) else value for value in results],
        }


if __name__ == "__main__":
    answer = main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
    print(json.dumps(answer))
