"""Writes what the tasks of a run say about their batches as the note of the run, which Airflow shows in its lists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.models.dagrun import DagRun
from airflow.models.xcom import XComModel
from airflow.utils.sqlalchemy import with_row_locks
from airflow.utils.state import DagRunState
from sqlalchemy import select

from tidemill_airflow.naming import FORM_TASKS, NOTE, WAITS, WORKS

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_OURS = "Tidemill: "
_MOST = 1_000
"""Airflow's limit for a note."""


def write_note(dag_run: DagRun, session: Session) -> None:
    """Write the note of a run in the session's transaction. What people have written in it stays above ours."""
    if texts := _texts(dag_run, session):
        dag_run.note = joined(dag_run.note, texts)


def _texts(dag_run: DagRun, session: Session) -> dict[str, str]:
    """What each task of a run has left."""
    wanted = select(XComModel.task_id, XComModel.value).where(
        XComModel.dag_id == dag_run.dag_id, XComModel.run_id == dag_run.run_id, XComModel.key == NOTE
    )
    return {task_id: _text(value) for task_id, value in session.execute(wanted.order_by(XComModel.task_id))}


def write_waiting_notes(dag_run: DagRun, session: Session) -> None:
    """Write the notes of the runs of the same pipeline that wait, in the session's transaction.

    Airflow tells the scheduler nothing while a run waits, for another one or for its own next turn. So this is done
    when another run of the pipeline starts or ends. A run that another scheduler has locked is left to it.
    """
    pipeline = dag_run.dag_id.partition(".")[0]
    forms = [named(pipeline) for named in FORM_TASKS]
    found = select(DagRun).where(DagRun.dag_id.in_(forms), DagRun.state == DagRunState.RUNNING, DagRun.id != dag_run.id)
    for run in session.scalars(with_row_locks(found, of=DagRun, session=session, skip_locked=True)).unique().all():
        texts = {task: text for task, text in _texts(run, session).items() if text.startswith((WAITS, WORKS))}
        if texts and (note := joined(run.note, texts)) != run.note:
            run.note = note


def joined(note: str | None, texts: Mapping[str, str]) -> str:
    """A note with the texts of tasks in place of those of an earlier time."""
    theirs = (note or "").partition(_OURS)[0].rstrip()
    several = len(texts) > 1
    ours = _OURS + "\n".join(f"{task}: {text}" if several else text for task, text in texts.items())
    room = _MOST - len(theirs) - (2 if theirs else 0)
    if len(ours) > room:
        ours = ours[: max(room - 1, 0)] + "\u2026" if room > 0 else ""
    return f"{theirs}\n\n{ours}".strip() if theirs else ours


def _text(value: Any) -> str:
    """What a task left: Airflow stores it as JSON text, in some databases already decoded."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        found = value
    return str(found)
