"""Creates DAGs from the pipelines of a project: one named after each pipeline, and those that change the past."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from airflow.sdk import DAG, get_parsing_context

from tidemill.core.errors import DeclarationError, InputError
from tidemill.project.project import Project
from tidemill_airflow.dags.amendments import backfill_dag, maintenance_dag, replay_dag
from tidemill_airflow.dags.entities import PipelineDag, pipeline_dag
from tidemill_airflow.dags.pipeline import make_dag
from tidemill_airflow.naming import MAINTENANCE, backfill_dag_of, replay_dag_of


def dags_for(project: Project | str | Path | None = None) -> dict[str, DAG]:
    """Return the DAGs of a project by id, for `globals().update(...)` in a file of the dags folder.

    Without `project`, the project is found as the `tidemill` command finds it. A task process that needs one DAG gets
    only that one.

    Warns:
        UserWarning: a pipeline file, a declaration or a contract is wrong. All other pipelines get their DAGs.

    Raises:
        InputError: tidemill.toml is wrong, or only faults were found. Airflow shows it as an import error.
    """
    found = project if isinstance(project, Project) else Project.load(project)

    @cache
    def entity(name: str) -> PipelineDag:
        return pipeline_dag(found.declared(name), str(found.folder))

    wanted = get_parsing_context().dag_id
    if wanted and wanted != MAINTENANCE and _declares(found, pipeline := wanted.partition(".")[0]):
        makers = _makers([pipeline], entity)
        if wanted in makers:
            return {wanted: makers[wanted]()}
    fit, faults = _fit(found, entity)
    if wanted == MAINTENANCE:
        return {MAINTENANCE: maintenance_dag(map(entity, fit))}
    for fault in faults:
        warnings.warn(f"a pipeline has no DAG: {fault}", stacklevel=2)
    if faults and not fit:
        raise faults[0]
    dags = {dag_id: make() for dag_id, make in _makers(fit, entity).items()}
    return {MAINTENANCE: maintenance_dag(map(entity, fit)), **dags}


def _declares(project: Project, pipeline: str) -> bool:
    """Whether a project has this pipeline. The wait for files of other pipelines is shorter.

    Raises:
        DeclarationError: the pipeline was not found, and some file is wrong.
    """
    try:
        project.check_declared(pipeline)
    except DeclarationError:
        if project.faults:
            raise
        return False
    return True


def _makers(names: Sequence[str], entity: Callable[[str], PipelineDag]) -> dict[str, Callable[[], DAG]]:
    """Functions that create the DAGs of each pipeline, by DAG id."""
    makers: dict[str, Callable[[], DAG]] = {}
    for name in names:
        makers[name] = partial(_of, entity, name, make_dag)
        makers[backfill_dag_of(name)] = partial(_of, entity, name, backfill_dag)
        makers[replay_dag_of(name)] = partial(_of, entity, name, replay_dag)
    return makers


def _of(entity: Callable[[str], PipelineDag], name: str, make: Callable[[PipelineDag], DAG]) -> DAG:
    return make(entity(name))


def _fit(project: Project, entity: Callable[[str], PipelineDag]) -> tuple[list[str], list[InputError]]:
    """The pipelines that can have DAGs, and the faults of the others."""
    fit: list[str] = []
    faults: list[InputError] = [*project.faults]
    for name in project.pipeline_names():
        try:
            entity(name)
        except InputError as error:
            faults.append(error)
        else:
            fit.append(name)
    return fit, faults
