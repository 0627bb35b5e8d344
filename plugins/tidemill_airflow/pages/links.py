"""Addresses. All of them are relative, so that pages work behind any path prefix."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from fastapi import Request

_OF_AIRFLOW = "airflow:"


@dataclass(frozen=True, slots=True)
class AirflowTask:
    """The run of a DAG that executed a batch."""

    dag_id: str
    run_id: str


def task_of(identity: str) -> AirflowTask | None:
    """The task that an executor's identity names (`identity_of`); None if no task of Airflow executed the batch."""
    if not identity.startswith(_OF_AIRFLOW):
        return None
    dag_id, _, rest = identity.removeprefix(_OF_AIRFLOW).partition("/")
    run_id, _, task = rest.rpartition("/")
    return AirflowTask(dag_id, run_id) if dag_id and run_id and task else None


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses as seen from one page; `up` leads to the first page, and ends with a slash if it is not empty."""

    up: str

    @staticmethod
    def of(request: Request) -> Links:
        """The links of the page that a request asks for."""
        root = request.scope.get("root_path", "")
        path = request.scope["path"].removeprefix(root)
        return Links("../" * (path.count("/") - 1) or "./")

    def to(self, *parts: object, **query: object) -> str:
        """The address of a page below the first one; None in a query is left out."""
        path = "/".join(quote(str(part), safe="") for part in parts)
        asked = urlencode({name: value for name, value in query.items() if value is not None})
        return f"{self.up}{path}" + (f"?{asked}" if asked else "")

    def static(self, name: str) -> str:
        """The address of a file."""
        return f"{self.up}static/{name}"

    def dag(self, dag_id: str) -> str:
        """The address of a DAG in Airflow, above these pages."""
        return f"{self.up}../dags/{quote(dag_id, safe='')}"

    def run(self, dag_id: str, run_id: str) -> str:
        """The address of a run in Airflow."""
        return f"{self.dag(dag_id)}/runs/{quote(run_id, safe='')}"
