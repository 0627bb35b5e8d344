"""One Airflow DAG for every Tidemill pipeline of this project.

The pipelines are declared in the folder of `tidemill.toml`, one level above this file; a pipeline that is added there
appears here by itself. Each DAG explains its pipeline on its own page.
"""

from pathlib import Path

from tidemill_airflow.factory import dags_for

globals().update(dags_for(Path(__file__).resolve().parents[1]))
