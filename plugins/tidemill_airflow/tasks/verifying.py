"""The task that compares published tables with a new computation over the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidemill.project.project import Project
from tidemill_airflow.tasks.asked import VERIFY_FIELDS, compared_of
from tidemill_airflow.tasks.at_once import FormOperator, job_of
from tidemill_airflow.tasks.reporting import leave_note

if TYPE_CHECKING:
    from airflow.sdk import Context


class VerifyOperator(FormOperator):
    """Computes published tables again from the log, and fails if they differ. Nothing is written.

    The task is skipped if nothing was compared: that proves nothing.
    """

    ui_color = "#e2ecd8"
    fields = VERIFY_FIELDS

    def answer(self, asked: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Compare each table, and log every difference."""
        wanted = compared_of(asked)
        from tidemill.inspect.lines import verified_lines
        from tidemill.inspect.verify import Scope, verify

        scope = Scope(windows=wanted.windows, sample=wanted.sample, seed=wanted.seed)
        found, text = [], ""
        for each in verify(job_of(Project.load(self.project), self.pipeline), scope):
            found.append(each)
            text += self.say(verified_lines(each)) + "\n"
        different = [each.table for each in found if not each.agrees]
        if different:
            said = f"{', '.join(different)}: rows differ from the log"
            leave_note(context["ti"], f"DIFFERENT: {said}", self.log)
            raise AirflowFailException(f"{self.pipeline}: {said}\n{text}")
        if not any(e.differences.compared for e in found):
            raise AirflowSkipException("nothing was compared, so this proves nothing")
        rows = {each.table: each.differences.compared for each in found}
        counted = ", ".join(f"{number:,} rows of {table}" for table, number in rows.items())
        leave_note(context["ti"], f"COMPARED: {counted}, and none differs", self.log)
        return {"pipeline": self.pipeline, "rows": rows, "text": text.strip()}
