"""Users, rights and runs, asked of Airflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.common.dagbag import create_dag_bag, get_latest_version_of_dag
from airflow.api_fastapi.core_api.datamodels.dag_run import TriggerDAGRunPostBody
from airflow.api_fastapi.core_api.security import bearer_scheme, get_user
from airflow.configuration import conf
from airflow.exceptions import ParamValidationError
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from fastapi import HTTPException, Request, status
from sqlalchemy import select

from tidemill_airflow.pages.access import Right, Run

_ASKED: Mapping[Right, tuple[Any, DagAccessEntity]] = {
    Right.READ: ("GET", DagAccessEntity.RUN),
    Right.READ_VALUES: ("GET", DagAccessEntity.TASK_LOGS),
    Right.RUN: ("POST", DagAccessEntity.RUN),
}


class AirflowAccess:
    """What `Access` promises, by Airflow's own functions."""

    def __init__(self) -> None:
        self._dag_bag = create_dag_bag()

    async def user(self, request: Request) -> Any:
        """The user of a token in the headers, or of the cookie that Airflow's login has set."""
        return await get_user(request, None, await bearer_scheme(request))

    def name(self, user: Any) -> str:
        """The name that Airflow gives a run's user."""
        return str(user.get_name())

    def may(self, user: Any, right: Right, dag_id: str) -> bool:
        """Ask the auth manager, as `requires_access_dag` does."""
        method, entity = _ASKED[right]
        details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
        return bool(
            get_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=details, user=user)
        )

    def readable(self, user: Any) -> set[str]:
        """Ask the auth manager."""
        return set(get_auth_manager().get_authorized_dag_ids(user=user, method="GET"))

    def start(self, user: Any, dag_id: str, form: Mapping[str, Any]) -> str:
        """Do what Airflow's API does when somebody triggers a DAG with values of its form."""
        with create_session() as session:
            model = session.scalar(select(DagModel).where(~DagModel.is_stale, DagModel.dag_id == dag_id).limit(1))
            if model is None:
                raise HTTPException(status.HTTP_404_NOT_FOUND, f"Airflow has no DAG {dag_id}")
            if model.has_import_errors:
                raise HTTPException(status.HTTP_409_CONFLICT, f"DAG {dag_id} has import errors and cannot run")
            if model.is_paused:
                raise HTTPException(
                    status.HTTP_409_CONFLICT,
                    f"DAG {dag_id} is paused, so its run would wait for ever. Unpause it in Airflow, and send it again",
                )
            dag = get_latest_version_of_dag(self._dag_bag, dag_id, session)
            try:
                values = TriggerDAGRunPostBody(logical_date=None, conf=dict(form)).validate_context(dag)
                run = dag.create_dagrun(
                    **{name: values[name] for name in _VALUES},
                    run_type=DagRunType.MANUAL,
                    triggered_by=DagRunTriggeredByType.UI,
                    triggering_user_name=user.get_name(),
                    state=DagRunState.QUEUED,
                    session=session,
                )
            except (ParamValidationError, ValueError) as error:
                raise HTTPException(status.HTTP_400_BAD_REQUEST, str(error)) from error
            return str(run.run_id)

    def runs(self, dag_id: str, run_ids: Sequence[str]) -> Mapping[str, Run]:
        """Read them in one statement."""
        if not run_ids:
            return {}
        columns = (DagRun.run_id, DagRun.run_after, DagRun.state, DagRun.end_date)
        with create_session() as session:
            rows = session.execute(select(*columns).where(DagRun.dag_id == dag_id, DagRun.run_id.in_(run_ids))).all()
        return {name: Run(run_id=name, due=due, state=str(state or ""), ended=end) for name, due, state, end in rows}

    def has(self, dag_id: str) -> bool:
        """Whether a DAG file makes it now."""
        with create_session() as session:
            found = select(DagModel.dag_id).where(~DagModel.is_stale, DagModel.dag_id == dag_id).limit(1)
            return session.scalar(found) is not None

    def secret(self) -> str:
        """The key with which the API server signs other things."""
        return str(conf.get("api", "secret_key"))

    def hosts(self) -> set[str]:
        """The host of `[api] base_url`, which a proxy may not pass on."""
        found = urlsplit(conf.get("api", "base_url", fallback="") or "").netloc
        return {found} if found else set()


_VALUES = ("run_id", "logical_date", "data_interval", "run_after", "conf", "partition_key", "partition_date")


def folders() -> Sequence[str | None]:
    """The projects to show: `[tidemill] projects`, with commas or lines between; else the one that is found."""
    text = conf.get("tidemill", "projects", fallback="") or ""
    named = [each.strip() for each in text.replace("\n", ",").split(",") if each.strip()]
    return named or [None]
