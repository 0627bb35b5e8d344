"""Creates DAGs from the pipelines of a project: one named after each pipeline, and those that change the past."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from airflow.sdk import DAG, get_parsing_context

from tidemill.core.errors import ConfigError, DeclarationError, InputError
from tidemill.project.project import Project
from tidemill_airflow.dags.amendments import backfill_dag, replay_dag
from tidemill_airflow.dags.deciding import decide_dag
from tidemill_airflow.dags.entities import PipelineDag, pipeline_dag
from tidemill_airflow.dags.maintaining import maintenance_dag
from tidemill_airflow.dags.pipeline import make_dag
from tidemill_airflow.dags.rewinding import rebuild_dag, rewind_dag, verify_dag
from tidemill_airflow.naming import (
    MAINTENANCE,
    backfill_dag_of,
    decide_dag_of,
    rebuild_dag_of,
    replay_dag_of,
    rewind_dag_of,
    verify_dag_of,
)

_MAKERS: Mapping[Callable[[str], str], Callable[[PipelineDag], DAG]] = {
    str: make_dag,
    backfill_dag_of: backfill_dag,
    decide_dag_of: decide_dag,
    rebuild_dag_of: rebuild_dag,
    replay_dag_of: replay_dag,
    rewind_dag_of: rewind_dag,
    verify_dag_of: verify_dag,
}
"""The DAGs of a pipeline: how each is called, and what makes it."""


def dags_for(
    project: Project | str | Path | None = None, *, ask_people: bool | Collection[str] = False
) -> dict[str, DAG]:
    """Return the DAGs of a project by id, for `globals().update(...)` in a file of the dags folder.

    Without `project`, the project is found as the `tidemill` command finds it. A task process that needs one DAG gets
    only that one. If an audit blocks a batch of a pipeline in `ask_people` (True: of any), people are asked under
    Required Actions of its DAG of decisions.

    Warns:
        UserWarning: a pipeline file, a declaration or a contract is wrong. All other pipelines get their DAGs.

    Raises:
        InputError: tidemill.toml is wrong, or only faults were found. Airflow shows it as an import error.
        ConfigError: `ask_people` names no pipeline.
    """
    found = project if isinstance(project, Project) else Project.load(project)
    asking = _asking(found, ask_people)

    @cache
    def entity(name: str) -> PipelineDag:
        described = pipeline_dag(found.declared(name), str(found.folder))
        return replace(described, ask_people=asking is None or name in asking)

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


def _asking(project: Project, names: bool | Collection[str]) -> Collection[str] | None:
    """The pipelines for which people are asked; None for all."""
    if isinstance(names, bool):
        return None if names else ()
    asking = (names,) if isinstance(names, str) else names
    # A file that cannot be read may declare what is missing: its fault is told, too.
    unknown = sorted(set(asking) - set(project.pipeline_names()))
    if unknown and not project.faults:
        raise ConfigError(
            f"ask_people: there is no pipeline {unknown[0]}", fix=f"known: {', '.join(project.pipeline_names())}"
        )
    return asking


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
    return {called(name): partial(_of, entity, name, make) for name in names for called, make in _MAKERS.items()}


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
