"""What a project changes in the DAGs and tasks that Tidemill makes: queues, executors, callbacks, retries, tags.

This module imports Airflow only to check arguments.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from tidemill.core.errors import ConfigError, shown
from tidemill_airflow.dags.option_values import check_values
from tidemill_airflow.naming import display_name

_PAUSED = "is_paused_upon_creation"
_FORM = "tasks read their forms by these names and types"
_DECLARED = "the declaration of the pipeline says it"
_MADE = "Tidemill makes it"
_SLOT = "one slot in the pool of the pipeline, and live runs first: otherwise batches would only refuse each other"

FIXED_OF_DAGS: Mapping[str, str] = {
    "catchup": "a batch reads on from the last commit, so runs of the past would find nothing to do",
    "dag_display_name": "several DAGs would have one name",
    "dag_id": "a DAG is called as its pipeline",
    "default_args": "give `default_args` beside `dag_args`",
    "description": _DECLARED,
    "doc_md": _DECLARED,
    "max_active_runs": "one batch of a pipeline can be open at a time, so a second run would be skipped",
    "params": _FORM,
    "render_template_as_native_obj": _FORM,
    "schedule": "the declaration says it: Pipeline(..., every=...)",
    **dict.fromkeys(("auto_register", "sla_miss_callback", "task_group", "template_undefined"), _MADE),
}
"""Arguments of a DAG that nobody can change, and why."""

FIXED_OF_TASKS: Mapping[str, str] = {
    "outlets": "each commit announces the tables of its pipeline",
    "owner": "the declaration says it: Pipeline(..., owner=...)",
    "params": _FORM,
    "render_template_as_native_obj": _FORM,
    **dict.fromkeys(("pool", "pool_slots", "priority_weight", "weight_rule"), _SLOT),
    **dict.fromkeys(("dag", "default_args", "sla", "task_display_name", "task_group", "task_id"), _MADE),
}
"""Arguments of a task that nobody can change, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DagOptions:
    """What Airflow is told about DAGs and tasks beyond their pipeline.

    Args:
        default_args: arguments of every task, such as `queue`, `executor`, `executor_config`, `retries` or
            `on_failure_callback`. They replace what Tidemill would give.
        dag_args: arguments of every DAG, such as `is_paused_upon_creation`, `start_date`, `dagrun_timeout` or
            `on_failure_callback`. `tags` are added to those that Tidemill gives.

    Raises:
        ConfigError: Airflow does not know an argument, it cannot be changed, or its value is wrong.
    """

    default_args: Mapping[str, Any] = field(default_factory=dict)
    dag_args: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.default_args or self.dag_args):
            return
        known_of_dags, known_of_tasks = known_arguments()
        _check("default_args", self.default_args, known_of_tasks, FIXED_OF_TASKS)
        _check("dag_args", self.dag_args, known_of_dags, FIXED_OF_DAGS)
        check_values("default_args", self.default_args)
        check_values("dag_args", self.dag_args)

    def over(self, general: DagOptions) -> DagOptions:
        """These options where they say something, and `general` elsewhere. Tags of both count."""
        tags = (*(general.dag_args.get("tags") or ()), *(self.dag_args.get("tags") or ()))
        return DagOptions(
            default_args={**general.default_args, **self.default_args},
            dag_args={**general.dag_args, **self.dag_args, **({"tags": tags} if tags else {})},
        )

    def without(self, argument: str) -> DagOptions:
        """These options without an argument of DAGs."""
        return replace(self, dag_args={name: value for name, value in self.dag_args.items() if name != argument})

    def dag(self, dag_id: str, *, tags: Iterable[str] = (), **ours: Any) -> dict[str, Any]:
        """The arguments of a DAG: what Tidemill gives, and over it what was chosen."""
        chosen = {name: value for name, value in self.dag_args.items() if name != "tags"}
        named = {"dag_id": dag_id, "dag_display_name": display_name(dag_id)}
        return {**named, **ours, **chosen, "tags": sorted({*tags, *(self.dag_args.get("tags") or ())})}

    def task(self, **ours: Any) -> dict[str, Any]:
        """The arguments of a task: what Tidemill gives, and over it what was chosen."""
        return {**ours, **self.default_args}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectOptions:
    """The options of all DAGs of a project. `special` are those of one pipeline or one DAG, by its name."""

    general: DagOptions = field(default_factory=DagOptions)
    special: Mapping[str, DagOptions] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.special, Mapping):
            raise ConfigError(
                f"dags_for: pipelines: expected a dictionary of DagOptions by name, found {shown(self.special)}",
                fix='pipelines={"sales": DagOptions(...)}, or leave it out: all pipelines get their DAGs',
            )
        for name, options in self.special.items():
            if not isinstance(options, DagOptions):
                raise ConfigError(
                    f"dags_for: pipelines: `{name}`: expected DagOptions, found {shown(options)}",
                    fix=f'pipelines={{"{name}": DagOptions(default_args={{...}}, dag_args={{...}})}}',
                )

    def of(self, pipeline: str, dag_id: str) -> DagOptions:
        """The options of a pipeline in a DAG: those of the DAG over those of the pipeline over those of the project.

        That new DAGs are paused is meant for those with a schedule. A form whose DAG is paused would accept runs and
        never start them, so only options of its own DAG pause it.
        """
        found = self.special[pipeline].over(self.general) if pipeline in self.special else self.general
        if dag_id != pipeline:
            found = found.without(_PAUSED)
            found = self.special[dag_id].over(found) if dag_id in self.special else found
        return found

    def check_names(self, known: Iterable[str]) -> None:
        """Check that all special options belong to a pipeline or a DAG in `known`.

        Raises:
            ConfigError: there is no such pipeline or DAG.
        """
        known = sorted(set(known))
        for name in self.special:
            if name not in known:
                raise ConfigError(
                    f"dags_for: pipelines: there is no pipeline and no DAG `{name}`",
                    fix=_near(name, known) or f"known: {', '.join(known)}",
                )


@contextmanager
def refusals(dag_id: str) -> Iterator[None]:
    """Say which DAG it was about, if Airflow refuses the value of an option.

    Raises:
        ConfigError: Airflow refused a value.
    """
    from airflow.sdk.exceptions import AirflowException

    try:
        yield
    except (TypeError, ValueError, AirflowException) as error:
        raise ConfigError(
            f"dags_for: Airflow refuses the DAG `{dag_id}`: {error}", fix="correct `default_args` or `dag_args`"
        ) from error


@cache
def known_arguments() -> tuple[frozenset[str], frozenset[str]]:
    """The arguments that the installed Airflow takes for a DAG and for a task."""
    from airflow.sdk import DAG, BaseOperator

    dag, task = (inspect.signature(each).parameters.keys() - {"self", "kwargs"} for each in (DAG, BaseOperator))
    return frozenset(dag), frozenset(task)


def _check(where: str, given: Mapping[str, Any], known: Iterable[str], fixed: Mapping[str, str]) -> None:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where}: expected a dictionary, found {shown(given)}", fix=f'{where}={{"...": ...}}')
    allowed = sorted(set(known) - fixed.keys())
    for name in given:
        if name in fixed:
            raise ConfigError(f"{where}: `{name}` cannot be changed: {fixed[name]}", fix="leave it out")
        if name not in allowed:
            raise ConfigError(
                f"{where}: Airflow has no argument `{name}`",
                fix=_near(name, allowed) or f"known: {', '.join(allowed)}",
            )


def _near(name: object, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f"did you mean `{close[0]}`?" if close else ""
