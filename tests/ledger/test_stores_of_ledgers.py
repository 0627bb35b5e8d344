"""A ledger whose store does not answer."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.core.errors import StoreUnreachable
from tidemill.ledger import reading
from tidemill.ledger.reading import Events


@pytest.fixture
def _silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("Generic S3 error: Error after 10 retries: connection refused\n\nDebug source: ...")

    monkeypatch.setattr(reading, "DeltaTable", fail)


@pytest.mark.usefixtures("_silent")
def test_bucket_that_does_not_answer_is_unreachable_and_may_be_tried_again() -> None:
    events = Events("s3://lake/ledger", "sums", lambda: {"aws_region": "eu"})
    with pytest.raises(StoreUnreachable) as found:
        events.past()
    assert found.value.retryable
    assert "ledger of sums (s3://lake/ledger) cannot be opened: Generic S3 error" in found.value.message
    assert "Debug source" not in str(found.value)


@pytest.mark.usefixtures("_silent")
def test_folder_that_cannot_be_read_for_another_reason_stays_a_defect() -> None:
    with pytest.raises(OSError, match="Generic"):
        Events("/lake/ledger", "sums", dict).past()
