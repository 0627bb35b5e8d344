"""The product itself: a batch with plan, contracts, audit, publication and commit."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.contestant import Arena, Delivery
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.protocol.events import Committed
from tidemill.ledger.process import this_process
from tidemill.project.project import Project
from tidemill.project.settings import Settings
from tidemill.run.batch import run_batch
from tidemill.run.claiming import Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROJECT = Path(__file__).parent / "project"
PIPELINE = "bench_requests"
TABLE = "requests_by_user"

_MOST = 100_000_000


class TidemillBatch:
    """Each round is one batch as a scheduled task runs it in a warm process: nothing is kept between batches
    but the declaration and the Spark session."""

    name = "tidemill"
    pipeline = PIPELINE
    table = TABLE
    pipelines = PROJECT / "pipelines"
    contracts = PROJECT / "data_contracts"

    def __init__(self, **more: Any) -> None:
        self._more = more

    def prepare(self, arena: Arena) -> None:
        self._spark, self._columns = arena.spark, arena.workload.columns
        self._project = Project(PROJECT, Settings(**self.settings(arena)))
        self._project.pipeline(self.pipeline)

    def settings(self, arena: Arena) -> dict[str, Any]:
        """Those of its project, and those that the contestant was made with."""
        return {
            "lake": str(arena.lake),
            "log": str(arena.log),
            "pipelines": str(self.pipelines),
            "contracts": str(self.contracts),
            "jars": "",
            # A round is one batch, whatever its size.
            "batch_records": _MOST,
            **self._more,
        }

    @property
    def project(self) -> Project:
        """Where its lake lies."""
        return self._project

    def round(self, delivery: Delivery) -> float:
        begin = time.perf_counter()
        outcome = run_batch(self._project, self.pipeline, self._request(), session=lambda: self._spark)
        seconds = time.perf_counter() - begin
        read = sum(a.read for a in outcome.accounts.values()) if isinstance(outcome, Committed) else 0
        if read != delivery.records:
            raise RuntimeError(f"{self.name} read {read} records of {delivery.records}")
        return seconds

    def _request(self) -> Request:
        limit = ReadLimit(self._project.settings.batch_records)
        return Request(executor=this_process(None), clock=datetime.now(UTC), limit=limit)

    def rows(self) -> DataFrame | None:
        return self.published(self.table).select(*self._columns)

    def published(self, table: str) -> DataFrame:
        """All rows of a published table."""
        return self._spark.read.format("delta").load(self._project.published_uri(table))
