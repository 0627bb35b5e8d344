"""Creates DAGs from the pipelines of a project: one named after each pipeline, and those that change the past."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache, partial
from pathlib import Path

from airflow.sdk import DAG, DeltaTriggerTimetable, Param, get_parsing_context

from tidemill.core.errors import DeclarationError, InputError
from tidemill.project.project import Project
from tidemill_airflow.amending_dags import backfill_dag, maintenance_dag, replay_dag
from tidemill_airflow.assets import batch_asset, table_asset
from tidemill_airflow.entities import PipelineDag, pipeline_dag
from tidemill_airflow.naming import MAINTENANCE, backfill_dag_of, pool_of, replay_dag_of
from tidemill_airflow.operators import MAX_BATCHES, MicroBatchOperator
from tidemill_airflow.priority import LiveBeforeBackfill

RETRIES = 3
RETRY_DELAY = timedelta(seconds=10)
MAX_RETRY_DELAY = timedelta(minutes=2)


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


def make_dag(entity: PipelineDag) -> DAG:
    """Create the DAG of one pipeline: a single task, because each further task would cost a second per batch."""
    with DAG(
        entity.pipeline,
        description=entity.description,
        doc_md=entity.document,
        schedule=DeltaTriggerTimetable(entity.every, interval=entity.every),
        catchup=False,
        max_active_runs=1,
        tags=entity.tags,
        params=run_limits(),
        render_template_as_native_obj=True,
    ) as dag:
        MicroBatchOperator(
            task_id="batch",
            pipeline=entity.pipeline,
            project=entity.project,
            max_records="{{ params.max_records }}",
            max_batches="{{ params.max_batches }}",
            owner=entity.owner,
            pool=pool_of(entity.pipeline),
            weight_rule=LiveBeforeBackfill(),
            retries=RETRIES,
            retry_delay=RETRY_DELAY,
            retry_exponential_backoff=2.0,
            max_retry_delay=MAX_RETRY_DELAY,
            outlets=[batch_asset(entity.pipeline), *(table_asset(table) for table in entity.tables)],
        )
    return dag


def run_limits() -> dict[str, Param]:
    """The form of a manual run: the most records per batch, and the most batches.

    Such a run catches up in limited steps. Like every run it continues after the last commit, and it reads nothing
    again that was committed. A scheduled run executes one batch with the project's limit.
    """
    return {
        "max_records": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="The most records in a batch",
            description="The run goes on after the last commit, batch by batch; empty for the project's limit.",
        ),
        "max_batches": Param(
            1,
            type="integer",
            minimum=1,
            maximum=MAX_BATCHES,
            title="The most batches in this run",
            description="One after the other; the run ends earlier when it has caught up.",
        ),
    }
