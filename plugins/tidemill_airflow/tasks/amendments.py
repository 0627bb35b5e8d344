"""Tasks that change the past or tidy up: backfills and replays in several turns, folds, and maintenance."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from tidemill.core.errors import TidemillError
from tidemill.core.repair.selection import selection, wanted
from tidemill.project.project import Project
from tidemill_airflow.tasks.batch_operator import BATCHES_A_TURN, BatchOperator, Turn, cancel
from tidemill_airflow.tasks.runner import Amendment, backfill_state, tasks_of

if TYPE_CHECKING:
    from airflow.sdk import Context


class AmendmentOperator(BatchOperator):
    """Executes the batches of an amendment in turns, and announces what was committed.

    Between two turns the slot of the pipeline's pool is free: a live run has the greater weight and goes first. While
    another run holds the open batch, or another backfill is incomplete, the task waits for its turn. It is skipped if
    there was nothing to do, and it fails without a retry if a retry could not help.

    Args:
        pipeline: the name of a pipeline of the project.
        project: the folder with tidemill.toml. Without it, the project is found as the `tidemill` command finds it.
        request: the values of the form.
        batches_a_turn: how many batches of the amendment one turn executes.
    """

    template_fields = ("request",)
    ui_color = "#f0e6d6"

    def __init__(
        self,
        *,
        request: Mapping[str, Any] | str | None = None,
        batches_a_turn: int = BATCHES_A_TURN,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.request = request
        self.batches_a_turn = batches_a_turn

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """What to do in this turn; None if earlier turns have done everything."""
        raise NotImplementedError

    def work(self, context: Context) -> dict[str, Any]:
        """Execute one turn."""
        asked = self.request if isinstance(self.request, Mapping) else {}
        turn = Turn(
            amendment=lambda project, identity: self.amendment(project, identity, asked),
            why=str(asked.get("why") or ""),
            most=asked.get("batch_records") or None,
            batches=self.batches_a_turn,
        )
        return turn.take(self, context)


class BackfillOperator(AmendmentOperator):
    """Reads offsets of the past again.

    The form gives `from_offsets` and `to_offsets`, or `from_time` and `to_time`, or `from_window` and `to_window`.
    """

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """Begin the backfill, continue it, or give it up."""
        mode = asked.get("mode") or "begin"
        if mode != "begin":
            opened = project.ledger(self.pipeline).view().position.backfill is not None
            return Amendment(what="resume" if mode == "resume" else "cancel") if opened else None
        state = backfill_state(project, self.pipeline, identity)
        if state == "complete":
            return None
        if state == "open":
            return Amendment(what="resume")
        windows = "/".join(filter(None, (asked.get("from_window"), asked.get("to_window")))) or None
        names = ("from_offsets", "to_offsets", "from_time", "to_time")
        parts = wanted(**{name: asked.get(name) or None for name in names}, windows=windows)
        return Amendment(what="backfill", wanted=parts, accept_loss=bool(asked.get("accept_loss")))


class ReplayOperator(AmendmentOperator):
    """Puts records from the quarantine or the late table through the pipeline again."""

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """Select the records that are left."""
        late = asked.get("records") == "late"
        names = ("batch", "topic", "partition", "offset", "since", "until")
        found = {name: asked.get(name) for name in names}
        found |= {"table": asked.get("table")} if late else {"reason": asked.get("rule")}
        return Amendment(what="late" if late else "quarantine", selection=selection(**found))


class FoldOperator(AmendmentOperator):
    """Folds the slices of many batches into one, where state has grown with their number.

    One turn folds all that is due.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(batches_a_turn=sys.maxsize, **kwargs)

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """Fold all groups that are due."""
        return Amendment(what="fold")


class MaintenanceOperator(BaseOperator):
    """Does the maintenance of a pipeline's tables and ledger, beside its batches."""

    template_fields = ("keep",)
    ui_color = "#e2ecd8"

    def __init__(self, *, pipeline: str, project: str | None = None, keep: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.project, self.keep = pipeline, project, keep

    def execute(self, context: Context) -> dict[str, Any]:
        """Do all maintenance tasks.

        Returns:
            The number of files or rows that each task handled, by table and task.
        """
        found: dict[str, Any] = {}
        try:
            for task in tasks_of(Project.load(self.project), self.pipeline, self.keep or None):
                self.log.info("%s: %s: %s", task.table, task.what, task.count)
                found[f"{task.table}: {task.what}"] = task.count
        except TidemillError as error:
            cancel(error)
        return found
