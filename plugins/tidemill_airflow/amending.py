"""Tasks that go back: backfills and replays in several turns, folds, and maintenance."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from tidemill.core.errors import TidemillError
from tidemill.core.repair.selection import selection, wanted
from tidemill.project.project import Project
from tidemill_airflow.runner import Amendment, backfill_state, tasks_of
from tidemill_airflow.tasks import BATCHES_A_TURN, BatchOperator, Turn, cancel

if TYPE_CHECKING:
    from airflow.sdk import Context


class AmendmentOperator(BatchOperator):
    """Executes the batches of an amendment in turns, and announces what was committed.

    Between two turns the slot of the pipeline's pool is free: a live run has the greater weight and goes first. While
    another run holds the open batch, or another backfill is not complete, the task waits for its turn. It is skipped
    when there was nothing to do, and fails without a retry when a retry could not help.

    Args:
        pipeline: the name of a pipeline of the project.
        project: the folder with tidemill.toml; found as the command `tidemill` finds it when it is not given.
        request: what is asked for, as the form has it.
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
        """What is to be done in this turn; None when an earlier one did it."""
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
    """Reads offsets of the past again: `from_offsets`, `to_offsets`, or `from_time`, `to_time`, or `windows`."""

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """Begin the backfill, or go on with it, or give it up."""
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
    """Puts records through the pipeline once more that are in `table`: quarantine, or the late table."""

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """The records that are left."""
        late = asked.get("records") == "late"
        names = ("batch", "topic", "partition", "offset", "since", "until")
        found = {name: asked.get(name) for name in names}
        found |= {"table": asked.get("table")} if late else {"reason": asked.get("rule")}
        return Amendment(what="late" if late else "quarantine", selection=selection(**found))


class FoldOperator(AmendmentOperator):
    """Makes the slices of many batches one, where state has grown with their number; all that is due in one turn."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(batches_a_turn=sys.maxsize, **kwargs)

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """Whatever is due."""
        return Amendment(what="fold")


class MaintenanceOperator(BaseOperator):
    """Makes the tables and the ledger of a pipeline small again, beside its batches."""

    template_fields = ("keep",)
    ui_color = "#e2ecd8"

    def __init__(self, *, pipeline: str, project: str | None = None, keep: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.project, self.keep = pipeline, project, keep

    def execute(self, context: Context) -> dict[str, Any]:
        """Do all maintenance tasks.

        Returns:
            How many files or rows each task was about, by table.
        """
        found: dict[str, Any] = {}
        try:
            for task in tasks_of(Project.load(self.project), self.pipeline, self.keep or None):
                self.log.info("%s: %s: %s", task.table, task.what, task.count)
                found[f"{task.table}: {task.what}"] = task.count
        except TidemillError as error:
            cancel(error)
        return found
