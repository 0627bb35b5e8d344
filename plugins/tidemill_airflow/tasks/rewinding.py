"""Tasks that undo batches, and that build all tables again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidemill.core.errors import ConfigError
from tidemill.core.plan.work import Kind
from tidemill.project.project import Project
from tidemill_airflow.tasks.asked import (
    CANCEL,
    DO,
    PLAN,
    REBUILD_FIELDS,
    REWIND_FIELDS,
    mode_of,
    records_of,
    target_of,
)
from tidemill_airflow.tasks.at_once import FormOperator, job_of
from tidemill_airflow.tasks.batch_operator import identity_of

if TYPE_CHECKING:
    from airflow.sdk import Context


class RewindOperator(FormOperator):
    """Returns offsets, watermark, state and tables to what they were after an earlier batch."""

    ui_color = "#f0e6d6"
    fields = REWIND_FIELDS

    def answer(self, asked: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Say what is taken back, or take it back."""
        from tidemill.inspect.lines import rewind_lines, undone_lines
        from tidemill.inspect.waiting import committed_lines
        from tidemill.repair import rewind as amend

        mode, to = mode_of(asked, self.modes), target_of(asked)
        project = Project.load(self.project)
        looked_at = job_of(project, self.pipeline)
        if to is None:
            if mode == DO:
                raise ConfigError("to: a rewind needs the batch to return to", fix=f"choose {PLAN}: it lists batches")
            return self.shown(
                context, ["the newest batches, one of which `to` may name:", *committed_lines(looked_at.ledger)]
            )
        if mode == PLAN:
            return self.shown(context, rewind_lines(amend.preview(looked_at, to)))
        watcher = self.batch_log(project)
        reason, identity = self.of_this_run(asked, context), identity_of(context["ti"])
        job = job_of(project, self.pipeline, reason=reason, identity=identity, watcher=watcher)
        self.say(undone_lines(amend.undone(looked_at.ledger.view().position, to)))
        return self.done(project, context, watcher, amend.rewind(job, to), lambda commit: commit.kind is Kind.REWIND)


class RebuildOperator(FormOperator):
    """Builds state and tables again from the log, beside the published ones, and switches. A retry continues."""

    ui_color = "#f0e6d6"
    fields = REBUILD_FIELDS
    modes = (PLAN, DO, CANCEL)

    def answer(self, asked: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Say where a rebuild stands, execute it, or drop it."""
        from tidemill.inspect.rebuilding import rebuild_lines
        from tidemill.repair.rebuild import rebuild
        from tidemill.repair.unfinished import cancel

        mode, most, accept_loss = mode_of(asked, self.modes), records_of(asked), bool(asked.get("accept_loss"))
        project = Project.load(self.project)
        if mode == PLAN:
            return self.shown(context, rebuild_lines(project, self.pipeline))
        if mode == CANCEL:
            numbers = cancel(job_of(project, self.pipeline, reason=self.reason(asked, context)))
            told = ", ".join(map(str, numbers))
            text = f"the rebuild was dropped (generation {told}); the published tables are as they were"
            return self.told(context, "DROPPED", [text])
        watcher = self.batch_log(project)
        reason, identity = self.of_this_run(asked, context), identity_of(context["ti"])
        job = job_of(project, self.pipeline, reason=reason, identity=identity, most=most, watcher=watcher)
        batches = rebuild(job, accept_loss=accept_loss)
        return self.done(project, context, watcher, batches, lambda commit: commit.kind is Kind.SWITCH)
