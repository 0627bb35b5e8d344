"""The links of a task: to the pages of its batch, the pipeline, its quarantine and each table, and to Spark's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk.bases.operatorlink import BaseOperatorLink
from attrs import define

from tidemill.core.errors import TidemillError
from tidemill.project.project import Project
from tidemill_airflow.assets import table_of
from tidemill_airflow.naming import PAGES

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


@define
class PageLink(BaseOperatorLink):
    """A link to a page of the plugin, below the address of Airflow's own pages.

    A worker need not know that address: the link is relative, and a browser adds what Airflow's page names as its base.
    """

    label: str
    path: str

    @property
    def name(self) -> str:
        """The text of the button."""
        return self.label

    @property
    def xcom_key(self) -> str:
        """Where the task leaves the link: Airflow's page shows no link that a task has not left."""
        return f"_link_tidemill_{self.label.replace(' ', '_')}"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address of the page."""
        return self.path


@define
class BatchLink(PageLink):
    """A link to the page of the last batch that the task executed, or tried to; without a batch there is no link."""

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address of the page; empty if there is no batch."""
        batch_id = getattr(operator, "batch_id", None)
        return "" if batch_id is None else f"{self.path}/batches/{batch_id}"


_SPARKS_OWN = ("spark.ui.reverseProxyUrl", "spark.yarn.historyServer.address")
"""Settings of Spark that say where people find its pages."""


@define
class SparkLink(PageLink):
    """A link to Spark's own pages, if the project's `[spark.conf]` says where they are."""

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address of the pages; empty if it is not known."""
        try:
            conf = Project.load(getattr(operator, "project", None)).settings.spark_conf
        except TidemillError:
            return ""
        found = next((conf[name] for name in _SPARKS_OWN if conf.get(name)), "")
        return found if not found or "://" in found else f"http://{found}"


def links_of(pipeline: str, outlets: Iterable[Any]) -> tuple[BaseOperatorLink, ...]:
    """The links of a task that executes batches of a pipeline; those to tables are of its outlets."""
    page = f"{PAGES}/pipelines/{quote(pipeline, safe='')}"
    tables = [table for outlet in outlets if (table := table_of(outlet)) is not None]
    return (
        BatchLink("Batch", page),
        PageLink("History", page),
        PageLink("Quarantine", f"{page}/quarantine"),
        SparkLink("Spark", ""),
        *(PageLink(f"Table {table}", f"{PAGES}/tables/{quote(table, safe='')}") for table in tables),
    )
