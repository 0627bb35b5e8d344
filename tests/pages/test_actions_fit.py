"""What pages send is what the forms of DAGs take."""

from __future__ import annotations

import pytest

from tidemill_airflow.pages.routes.acting import BOUNDS, DO, FILTERS


def test_pages_fill_in_fields_that_the_forms_have() -> None:
    asked = pytest.importorskip("tidemill_airflow.tasks.asked")
    assert DO == asked.DO
    assert {"mode", "by", "why", *BOUNDS} <= asked.BACKFILL_FIELDS
    assert {"mode", "by", "why", "records", *FILTERS} <= asked.REPLAY_FIELDS
    assert {"decision", "batch", "by", "why"} <= asked.DECISION_FIELDS
