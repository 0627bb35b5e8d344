"""Creates DAGs from the pipelines of a project: one named after each pipeline, and those that change the past."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, get_parsing_context

from tidemill.core.errors import ConfigError, shown
from tidemill.project.project import Project
from tidemill_airflow.dags.amendments import backfill_dag, replay_dag
from tidemill_airflow.dags.broken import Broken, broken_dag
from tidemill_airflow.dags.chosen import Chosen, Watched
from tidemill_airflow.dags.deciding import decide_dag
from tidemill_airflow.dags.entities import PipelineDag, pipeline_dag
from tidemill_airflow.dags.maintaining import maintenance_dag
from tidemill_airflow.dags.options import DagOptions, ProjectOptions, refusals
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

__all__ = ["DagOptions", "dags_for"]


def dags_for(  # noqa: PLR0913  one for each thing that a project chooses
    project: Project | str | Path | None = None,
    *,
    default_args: Mapping[str, Any] | None = None,
    dag_args: Mapping[str, Any] | None = None,
    pipelines: Mapping[str, DagOptions] | None = None,
    ask_people: bool | Collection[str] = False,
    start_on_records: bool | Collection[str] | Mapping[str, str | timedelta] = False,
) -> dict[str, DAG]:
    """Return the DAGs of a project by id, for `globals().update(...)` in a file of the dags folder.

    The DAGs of a pipeline whose file, declaration or contract is wrong have no schedule, and one task, which fails with
    what is wrong; all others are not concerned. A task process that needs one DAG gets only that one.

    Args:
        project: the project or its folder. Without it, the project is found as the `tidemill` command finds it.
        default_args: arguments of all tasks: see `DagOptions`.
        dag_args: arguments of all DAGs: see `DagOptions`. `is_paused_upon_creation` holds only for DAGs with a
            schedule: the run of a form whose DAG is paused would wait for ever.
        pipelines: options of single pipelines, or of single DAGs, by name. They go before those of the project.
        ask_people: the pipelines about whose blocked batches people are asked, under Required Actions of their DAG of
            decisions; True for all.
        start_on_records: the pipelines whose runs start as soon as the log has records, besides at the declared times;
            True for all. A mapping says how often to look: `{"sales": "10 seconds"}`; every 2 seconds otherwise. Needs
            a triggerer that reaches the project's folder, its log and its lake.

    Warns:
        UserWarning: a pipeline cannot run, or there is none.

    Raises:
        ConfigError: tidemill.toml is wrong, Airflow does not know an argument, or an argument cannot be changed, or
            `pipelines`, `ask_people` or `start_on_records` names no pipeline. Airflow shows it as an import error.
    """
    general = DagOptions(default_args=default_args or {}, dag_args=dag_args or {})
    options = ProjectOptions(general=general, special=pipelines or {})
    opened = _opened(project)
    made = _Factory(
        opened, options, Chosen.of("ask_people", ask_people), Watched.of("start_on_records", start_on_records)
    )
    wanted = get_parsing_context().dag_id
    if wanted and (found := made.only(wanted)) is not None:
        return found
    dags, told = made.all()
    for text in told:
        warnings.warn(text, stacklevel=2)
    return dags


def _opened(project: Project | str | Path | None) -> Project:
    if isinstance(project, Project):
        return project
    if not isinstance(project, str | Path | None):
        raise ConfigError(
            f"dags_for: expected the folder of a project, found {shown(project)}",
            fix='for example dags_for("/srv/shop")',
        )
    return Project.load(project)


@dataclass(frozen=True, slots=True)
class _Factory:
    """Makes the DAGs of a project. Each pipeline is bound to its contracts once."""

    project: Project
    options: ProjectOptions
    asking: Chosen
    watched: Watched
    bound: dict[str, PipelineDag] = field(default_factory=dict)

    def only(self, dag_id: str) -> dict[str, DAG] | None:
        """One DAG of the project; None if it has no such DAG.

        The wait for files of other pipelines is shorter if the pipeline can run.
        """
        name = dag_id.partition(".")[0]
        if dag_id in _ids_of(name) and self._cause(name) is None:
            return {dag_id: self._made(name, dag_id)}
        makers = self._makers(self._stopped())
        return {dag_id: makers[dag_id]()} if dag_id in makers else None

    def all(self) -> tuple[dict[str, DAG], list[str]]:
        """All DAGs of the project, and what people should know about them."""
        stopped = self._stopped()
        makers = self._makers(stopped)
        told = [*self._check_names({*self.bound, *stopped}, stopped)]
        told += [f"the pipeline {name} does not run: {error}" for name, error in stopped.items()]
        if not makers:
            told.append(f"there are no DAGs, because {self.project.settings.pipelines} declares no pipelines")
        return {dag_id: make() for dag_id, make in makers.items()}, told

    def _check_names(self, names: Collection[str], stopped: Mapping[str, Exception]) -> Iterator[str]:
        """Yield which names in arguments of `dags_for` are unknown, if a broken file may explain it."""
        try:
            self.asking.check_names(names)
            self.watched.names.check_names(names)
            self.options.check_names((MAINTENANCE, *(dag_id for name in names for dag_id in _ids_of(name))))
        except ConfigError as error:
            if not stopped:
                raise
            yield str(error)

    def _makers(self, stopped: Mapping[str, Exception]) -> dict[str, Callable[[], DAG]]:
        """What makes each DAG, by its id."""
        fit = [name for name in self.project.pipeline_names() if name not in stopped]
        broken = [(name, Broken.of(name, error)) for name, error in stopped.items()]
        all_broken = [(name, each) for name, live in broken for each in (*live.forms(), live)]
        makers: dict[str, Callable[[], DAG]] = {b.dag_id: partial(self._broken, name, b) for name, b in all_broken}
        makers |= {dag_id: partial(self._made, name, dag_id) for name in fit for dag_id in _ids_of(name)}
        return makers | ({MAINTENANCE: partial(self._maintenance, fit)} if fit else {})

    def _stopped(self) -> dict[str, Exception]:
        """What stops each pipeline that cannot run, by its name."""
        causes = {name: self._cause(name) for name in self.project.pipeline_names()}
        return {**self.project.stopped, **{name: cause for name, cause in causes.items() if cause is not None}}

    def _cause(self, name: str) -> Exception | None:
        """Why a pipeline cannot run, None if it can. Whatever it is, it must not take the DAGs of others away."""
        try:
            self._entity(name)
        except Exception as error:
            return error
        return None

    def _entity(self, name: str) -> PipelineDag:
        if name not in self.bound:
            flow = self.project.declared(name)
            self.bound[name] = pipeline_dag(flow, str(self.project.folder), self.project.settings.lake)
        return self.bound[name]

    def _with_options(self, name: str, dag_id: str) -> PipelineDag:
        return replace(
            self._entity(name),
            options=self.options.of(name, dag_id),
            ask_people=name in self.asking,
            look_every=self.watched.look_every(name),
        )

    def _made(self, name: str, dag_id: str) -> DAG:
        with refusals(dag_id):
            return _ids_of(name)[dag_id](self._with_options(name, dag_id))

    def _broken(self, name: str, broken: Broken) -> DAG:
        with refusals(broken.dag_id):
            return broken_dag(broken, self.options.of(name, broken.dag_id))

    def _maintenance(self, names: Iterable[str]) -> DAG:
        entities = [self._with_options(name, MAINTENANCE) for name in names]
        with refusals(MAINTENANCE):
            return maintenance_dag(entities, self.options.of(MAINTENANCE, MAINTENANCE))


def _ids_of(pipeline: str) -> dict[str, Callable[[PipelineDag], DAG]]:
    """The ids of the DAGs of a pipeline, and what makes each."""
    return {
        pipeline: make_dag,
        backfill_dag_of(pipeline): backfill_dag,
        decide_dag_of(pipeline): decide_dag,
        rebuild_dag_of(pipeline): rebuild_dag,
        replay_dag_of(pipeline): replay_dag,
        rewind_dag_of(pipeline): rewind_dag,
        verify_dag_of(pipeline): verify_dag,
    }
