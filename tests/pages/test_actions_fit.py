"""What pages send is what the forms of DAGs take."""

from __future__ import annotations

import pytest

from tidemill_airflow.naming import rebuild_dag_of, replay_dag_of, rewind_dag_of, verify_dag_of
from tidemill_airflow.pages.views.plans import ACCEPT_LOSS, ACTIONS, BATCH_RECORDS, Action
from tidemill_airflow.tasks import asked

FIELDS = {
    replay_dag_of: asked.REPLAY_FIELDS,
    rewind_dag_of: asked.REWIND_FIELDS,
    rebuild_dag_of: asked.REBUILD_FIELDS,
    verify_dag_of: asked.VERIFY_FIELDS,
}


def test_pages_fill_in_fields_that_the_forms_have() -> None:
    limits = {BATCH_RECORDS.name, ACCEPT_LOSS.name}
    assert {"mode", "by", "why", *asked.BOUNDS} | limits == asked.BACKFILL_FIELDS
    assert {"decision", "batch", "by", "why"} <= asked.DECISION_FIELDS


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_an_action_fills_in_the_fields_of_its_form(action: Action) -> None:
    sent = {field.name for field in action.fields} | ({"mode", "by", "why"} if action.plan else set())
    # Whoever wants the same random windows again triggers the DAG itself.
    assert sent == FIELDS[action.dag_of] - {"seed"}
    assert set(action.needed) <= sent
