"""What pages send is what the forms of DAGs take."""

from __future__ import annotations

from tidemill_airflow.pages.routes.acting import BOUNDS, DO, FILTERS
from tidemill_airflow.tasks import asked


def test_pages_fill_in_fields_that_the_forms_have() -> None:
    assert DO == asked.DO
    assert {"mode", "by", "why", *BOUNDS} <= asked.BACKFILL_FIELDS
    assert {"mode", "by", "why", "records", *FILTERS} <= asked.REPLAY_FIELDS
    assert {"decision", "batch", "by", "why"} <= asked.DECISION_FIELDS
