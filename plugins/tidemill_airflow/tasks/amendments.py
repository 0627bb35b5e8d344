"""Tasks that change the past in several turns: backfills and replays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tidemill.core.errors import ConfigError
from tidemill.project.project import Project
from tidemill_airflow.tasks.asked import (
    BACKFILL_FIELDS,
    CANCEL,
    DO,
    PLAN,
    REPLAY_FIELDS,
    RESUME,
    backfill_of,
    mode_of,
    records_of,
    replay_of,
)
from tidemill_airflow.tasks.at_once import FormOperator, job_of, user_of
from tidemill_airflow.tasks.batch_operator import BATCHES_A_TURN, Turn
from tidemill_airflow.tasks.runner import Amendment, backfill_state, has_begun, of_another

if TYPE_CHECKING:
    from airflow.sdk import Context


class AmendmentOperator(FormOperator):
    """Executes the batches of an amendment in turns, and announces what was committed.

    Between two turns the slot of the pipeline's pool is free: a live run has the greater weight and goes first. While
    another run holds the open batch, or another backfill is incomplete, the task waits for its turn. It is skipped if
    there was nothing to do, and it fails without a retry if a retry could not help. If the form says `plan only`, it
    says what would be done, and does nothing.

    Args:
        pipeline: the name of a pipeline of the project.
        project: the folder with tidemill.toml. Without it, the project is found as the `tidemill` command finds it.
        request: the values of the form.
        batches_a_turn: how many batches of the amendment one turn executes.
    """

    ui_color = "#f0e6d6"

    def __init__(self, *, batches_a_turn: int = BATCHES_A_TURN, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.batches_a_turn = batches_a_turn

    def check(self, asked: Mapping[str, Any]) -> None:
        """Refuse values of the form that contradict each other, before anything is read.

        Raises:
            ConfigError: with what to change.
        """

    def plan(self, project: Project, asked: Mapping[str, Any]) -> Iterable[str]:
        """What would be done, in lines of text."""
        raise NotImplementedError

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """What to do in this turn; None if earlier turns have done everything."""
        raise NotImplementedError

    def answer(self, asked: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Say what would be done, or execute one turn of it."""
        self.check(asked)
        if self.fields and mode_of(asked, self.modes) == PLAN:
            return self.shown(context, self.plan(Project.load(self.project), asked))
        said = [text for text in (asked.get("by") or user_of(context), asked.get("why")) if text]
        turn = Turn(
            amendment=lambda project, identity: self.amendment(project, identity, asked),
            why=": ".join(said),
            most=records_of(asked),
            batches=self.batches_a_turn,
        )
        return turn.take(self, context)


class BackfillOperator(AmendmentOperator):
    """Reads offsets of the past again.

    The form gives `from_offsets` and `to_offsets`, or `from_time` and `to_time`, or `from_window` and `to_window`.
    """

    fields = BACKFILL_FIELDS
    modes = (PLAN, DO, RESUME, CANCEL)

    def check(self, asked: Mapping[str, Any]) -> None:
        """Refuse bounds that contradict each other or the mode."""
        mode, wanted = mode_of(asked, self.modes), backfill_of(asked)
        if wanted is not None and mode in (RESUME, CANCEL):
            raise ConfigError(
                f"{mode} is about the backfill that is open, and the form says what another one reads",
                fix=f"leave offsets, times and windows empty, or choose {DO}",
            )
        if wanted is None and mode == DO:
            raise ConfigError(
                "a backfill wants offsets, or times, or windows",
                fix=f"give one of them; {PLAN} without any shows offsets",
            )

    def plan(self, project: Project, asked: Mapping[str, Any]) -> Iterable[str]:
        """What the backfill would read and change; without bounds, which offsets there are."""
        from tidemill.inspect.lines import backfill_lines
        from tidemill.inspect.waiting import offset_lines
        from tidemill.repair.backfill import preview

        wanted = backfill_of(asked)
        if wanted is None:
            return ["offsets that a backfill can name:", *offset_lines(project, self.pipeline)]
        job = job_of(project, self.pipeline, most=records_of(asked))
        return backfill_lines(preview(job, wanted, accept_loss=bool(asked.get("accept_loss"))))

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """Begin the backfill, continue it, or give it up."""
        mode = mode_of(asked, self.modes)
        if mode != DO:
            ledger = project.ledger(self.pipeline)
            job = ledger.view().position.backfill
            if job is None or of_another(ledger, job, identity):
                return None
            return Amendment(what="resume" if mode == RESUME else "cancel")
        state = backfill_state(project, self.pipeline, identity)
        if state == "complete":
            return None
        wanted = backfill_of(asked)
        if state == "open" or wanted is None:
            return Amendment(what="resume")
        return Amendment(what="backfill", wanted=wanted, accept_loss=bool(asked.get("accept_loss")))


class ReplayOperator(AmendmentOperator):
    """Puts records from the quarantine or the late table through the pipeline again."""

    fields = REPLAY_FIELDS

    def check(self, asked: Mapping[str, Any]) -> None:
        """Refuse conditions that belong to the other kind of records."""
        replay_of(asked)

    def plan(self, project: Project, asked: Mapping[str, Any]) -> Iterable[str]:
        """Which records would be taken."""
        from tidemill.core.plan.amendments import SideOutput
        from tidemill.inspect.repairs import repair_lines

        late, chosen = replay_of(asked)
        output = SideOutput.LATE if late else SideOutput.QUARANTINE
        return repair_lines(job_of(project, self.pipeline, most=records_of(asked)), output, chosen)

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """Select the records that are left. Later turns may find none: earlier ones have taken them."""
        from tidemill.core.plan.amendments import SideOutput
        from tidemill.repair.named import check_something

        late, chosen = replay_of(asked)
        if not has_begun(project.ledger(self.pipeline), identity):
            check_something(job_of(project, self.pipeline), SideOutput("late" if late else "quarantine"), chosen)
        return Amendment(what="late" if late else "quarantine", selection=chosen)
