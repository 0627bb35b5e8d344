"""Tasks that go back: backfills and replays in several turns, and maintenance."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowRescheduleException, AirflowSkipException

from tidemill.core.asked import choice, wanted
from tidemill.core.errors import Busy, TidemillError
from tidemill.core.plan import Kind
from tidemill.project import Project
from tidemill_airflow.announcing import announce
from tidemill_airflow.execution import commits_of, facts, summary
from tidemill_airflow.operators import give_up, identity_of
from tidemill_airflow.runner import Amendment, amendment_runner, backfill_state, chores_of

if TYPE_CHECKING:
    from airflow.sdk import Context

BATCHES_A_TURN = 5
"""After so many batches of its own a backfill gives its slot back, so that a live run which waits comes next."""


class AmendmentOperator(BaseOperator):
    """Executes the batches of an amendment in turns, and announces what was committed.

    Between two turns the slot of the pipeline's pool is free: a live run has the greater weight and goes first. The
    task is skipped when there was nothing to do, and fails without a retry when a retry could not help.

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
        pipeline: str,
        project: str | None = None,
        request: Mapping[str, Any] | str | None = None,
        batches_a_turn: int = BATCHES_A_TURN,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.project = pipeline, project
        self.request = request
        self.batches_a_turn = batches_a_turn

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """What is to be done in this turn; None when an earlier one did it."""
        raise NotImplementedError

    def execute(self, context: Context) -> dict[str, Any]:
        """Execute one turn.

        Returns:
            What was committed in all turns, for later tasks: pipeline, and for each batch its facts.
        """
        project, identity = Project.load(self.project), identity_of(context["ti"])
        asked = self.request if isinstance(self.request, Mapping) else {}
        try:
            amendment = self.amendment(project, identity, asked)
            done = amendment is None or self._turn(project, amendment, identity, asked)
        except Busy as busy:
            self.log.info("%s", busy)
            done = False
        except TidemillError as error:
            give_up(error)
        if not done:
            self.log.info("%s: the next turn goes on", self.pipeline)
            raise AirflowRescheduleException(datetime.now(UTC))  # type: ignore[no-untyped-call]
        # Earlier turns could tell nobody.
        commits = commits_of((entry.event for entry in project.ledger(self.pipeline).entries()), identity)
        if not commits:
            raise AirflowSkipException("nothing to do")
        announce(self.pipeline, commits, self.outlets, context["outlet_events"])
        return {"pipeline": self.pipeline, "batches": [facts(commit) for commit in commits]}

    def _turn(self, project: Project, amendment: Amendment, identity: str, asked: Mapping[str, Any]) -> bool:
        """Whether all is done."""
        own = 0
        why, most = str(asked.get("why") or ""), asked.get("batch_records") or None
        for commit in amendment_runner(project, self.pipeline, amendment, identity=identity, why=why, most=most):
            self.log.info("%s", summary(commit))
            own += commit.kind is not Kind.LIVE
            if own == self.batches_a_turn and commit.position.backfill is not None:
                return False
        return True


class BackfillOperator(AmendmentOperator):
    """Reads offsets of the past again: `from_offsets`, `to_offsets`, or `from_time`, `to_time`, or `windows`."""

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """Begin the backfill, or go on with it."""
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
        names = ("batch", "topic", "partition", "since", "until")
        found = {name: asked.get(name) for name in names} | {"reason": None if late else asked.get("rule")}
        return Amendment(what="late" if late else "quarantine", choice=choice(**found))


class MaintenanceOperator(BaseOperator):
    """Makes the tables and the ledger of a pipeline small again, beside its batches."""

    template_fields = ("keep",)
    ui_color = "#e2ecd8"

    def __init__(self, *, pipeline: str, project: str | None = None, keep: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.project, self.keep = pipeline, project, keep

    def execute(self, context: Context) -> dict[str, Any]:
        """Do all chores.

        Returns:
            How many files or rows each chore was about, by table.
        """
        found: dict[str, Any] = {}
        try:
            for chore in chores_of(Project.load(self.project), self.pipeline, self.keep or None):
                self.log.info("%s: %s: %s", chore.table, chore.what, chore.count)
                found[f"{chore.table}: {chore.what}"] = chore.count
        except TidemillError as error:
            give_up(error)
        return found
