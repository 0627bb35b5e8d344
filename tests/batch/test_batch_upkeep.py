"""A thousand batches leave few files, and folding them changes nothing that can be seen."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from support.projects import Mill, an_event, sums
from tidemill.run import after_commit
from tidemill.tables.deltars import DeltaRsTable

pytestmark = pytest.mark.spark


def files(mill: Mill) -> dict[str, int]:
    uris = {
        "ledger": mill.project.table_uri("sums", "ledger"),
        "state": mill.project.table_uri("sums", "state", "sums"),
        "quarantine": mill.project.table_uri("sums", "quarantine"),
        "published": mill.project.published_uri("sums"),
    }
    return {name: len(DeltaTable(uri).file_uris()) for name, uri in uris.items()}


def ten_batches(mill: Mill, first: int) -> None:
    for number in range(first, first + 10):
        mill.feed([an_event(10 * number), an_event(10 * number + 1, "b"), b"broken"])
        mill.run()


@pytest.mark.long
def test_small_files_are_folded_and_no_row_changes(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mill = sums(tmp_path, spark, lateness="20 s")
    ten_batches(mill, 0)
    many, seen = files(mill), mill.everything()
    monkeypatch.setattr(after_commit, "EVERY", 11)
    mill.feed([an_event(100)])
    mill.run()
    few = files(mill)
    assert few["state"] == few["quarantine"] == 1
    assert few["published"] < many["published"] / 2
    assert {k: v for k, v in mill.everything().items() if k != "sums"} == {k: v for k, v in seen.items() if k != "sums"}
    ten_batches(mill, 11)
    mill.catch_up()
    rows = mill.published()
    assert sum(r["n"] for r in rows) == 41
    assert len(rows) == 41
    assert len(mill.own("quarantine")) == 20


def test_a_batch_stays_committed_when_folding_fails(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    mill = sums(tmp_path, spark)
    monkeypatch.setattr(after_commit, "EVERY", 1)
    monkeypatch.setattr(DeltaRsTable, "compact", fail)
    mill.feed([an_event(1)])
    with caplog.at_level(logging.WARNING):
        assert mill.run().batch_id == 1
    assert "files were not folded after batch 1" in caplog.text
    assert mill.project.ledger("sums").view().last_batch_id == 1
