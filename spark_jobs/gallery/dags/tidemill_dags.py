"""One Airflow DAG for each pipeline of the gallery, with its forms, and one of maintenance.

Start them on this machine with `tidemill --project spark_jobs/gallery up`.
"""

from pathlib import Path

from tidemill_airflow.factory import dags_for

globals().update(dags_for(Path(__file__).resolve().parents[1]))
