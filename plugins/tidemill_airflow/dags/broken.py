"""The DAG of a pipeline whose file or contract is wrong: it stays in Airflow's list, and says what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from tidemill.core.errors import TidemillError
from tidemill_airflow.dags.documents import code
from tidemill_airflow.dags.options import DagOptions
from tidemill_airflow.naming import FORM_TASKS, TAG, TASK

if TYPE_CHECKING:
    from airflow.sdk import Context

BROKEN = f"{TAG}:broken"
"""The tag of all such DAGs."""

_NOT_IN_IDS = re.compile(r"[^\w.-]")
_LONGEST_ID = 200
_LONGEST_TEXT = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A DAG of a pipeline that cannot run, its task, and why."""

    dag_id: str
    message: str
    fix: str = ""
    task: str = TASK

    @staticmethod
    def of(name: str, error: Exception) -> Broken:
        """Describe what is wrong with the pipeline of this name."""
        dag_id = _NOT_IN_IDS.sub("_", name)[:_LONGEST_ID] or "_"
        if isinstance(error, TidemillError):
            return Broken(dag_id=dag_id, message=error.message[:_LONGEST_TEXT], fix=error.fix[:_LONGEST_TEXT])
        return Broken(dag_id=dag_id, message=f"{type(error).__name__}: {error}"[:_LONGEST_TEXT])

    def forms(self) -> Iterator[Broken]:
        """The DAGs that a person triggers: their history stays in sight, too, and a form says why it cannot run."""
        if "." not in self.dag_id:
            for dag_of, task in FORM_TASKS.items():
                yield replace(self, dag_id=dag_of(self.dag_id), task=task)

    @property
    def text(self) -> str:
        """What is wrong and what to do, without a stack trace."""
        return f"{self.message}\n  fix: {self.fix}" if self.fix else self.message


class BrokenOperator(BaseOperator):
    """Fails and says what is wrong with its pipeline; a retry cannot help."""

    ui_color = "#f6d5d5"

    def __init__(self, *, message: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.message = message

    def execute(self, context: Context) -> NoReturn:
        """Fail with the message."""
        raise AirflowFailException(self.message)


def broken_dag(broken: Broken, options: DagOptions) -> DAG:
    """A DAG of a pipeline that cannot run.

    It has the name of the sound DAG and of its task, so that the history stays in sight, and a run that waits for its
    retry meets the message. It has no schedule. Queue, callbacks and all other options are those of the pipeline.
    """
    about = options.dag(
        broken.dag_id,
        description=" ".join(broken.message.split())[:500],
        doc_md=_document(broken),
        schedule=None,
        catchup=False,
        max_active_runs=1,
        tags=[TAG, BROKEN],
    )
    task = options.task(task_id=broken.task, message=broken.text, owner=TAG)
    with DAG(**about) as dag:
        BrokenOperator(**task)
    return dag


def _document(broken: Broken) -> str:
    # Airflow shows the page in a narrow window, and cuts off blocks of code.
    lines = [code(line) for line in broken.message.splitlines() if line.strip()]
    fix = f"**What to do:** {code(broken.fix)}\n\n" if broken.fix else ""
    return (
        "**This pipeline does not run, because its declaration is wrong.** Nothing is lost: its tables stay as they "
        "are, and its first batch after the correction reads on from the last commit.\n\n"
        + "\n\n".join(lines)
        + f"\n\n{fix}After the correction the DAG comes back by itself, within a minute. `tidemill contract lint` "
        "checks contracts, and `tidemill explain PIPELINE` a pipeline.\n"
    )
