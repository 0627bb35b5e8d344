"""An Airflow on this machine: its processes under one supervisor, and what belongs into an Airflow's folders."""
