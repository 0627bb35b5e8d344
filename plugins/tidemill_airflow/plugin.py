"""Tidemill's plugin for Airflow."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from tidemill_airflow.scheduler import listener
from tidemill_airflow.scheduler.priority import LiveBeforeBackfill


class TidemillPlugin(AirflowPlugin):
    """Adds the priority of live batches over backfills, and a pool for every pipeline."""

    name = "tidemill"
    priority_weight_strategies: list[Any] = [LiveBeforeBackfill]  # noqa: RUF012  declared so by Airflow
    listeners: list[Any] = [listener]  # noqa: RUF012
