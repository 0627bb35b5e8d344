"""Tidemill's plugin for Airflow."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from tidemill_airflow.pages.lazy import LazyApp
from tidemill_airflow.scheduler import listener
from tidemill_airflow.scheduler.priority import LiveBeforeBackfill

_LOOK = {
    "nav_top_level": True,
    "icon": "tidemill/static/icon.svg",
    "icon_dark_mode": "tidemill/static/icon-dark.svg",
}


def _pages() -> Any:
    from tidemill_airflow.pages.app import airflow_app

    return airflow_app()


class TidemillPlugin(AirflowPlugin):
    """Adds the priority of live batches over backfills, a pool for every pipeline, and the pages of Tidemill."""

    name = "tidemill"
    priority_weight_strategies: list[Any] = [LiveBeforeBackfill]  # noqa: RUF012  declared so by Airflow
    listeners: list[Any] = [listener]  # noqa: RUF012
    fastapi_apps: list[Any] = [{"name": "tidemill", "app": LazyApp(_pages), "url_prefix": "/tidemill"}]  # noqa: RUF012
    external_views: list[Any] = [  # noqa: RUF012
        {"name": "Tidemill", "href": "tidemill/", "destination": "nav", "url_route": "tidemill", **_LOOK},
        {"name": "Tidemill", "href": "tidemill/dags/{DAG_ID}", "destination": "dag", "url_route": "tidemill_dag"},
        {
            "name": "Batches",
            "href": "tidemill/dags/{DAG_ID}/runs/{RUN_ID}",
            "destination": "dag_run",
            "url_route": "tidemill_run",
        },
    ]
