"""The proof of a demonstration: the tables against the log, and the account against the tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.account import Account
from tidemill.demo.site import PIPELINE, TABLE
from tidemill.inspect.verify import Scope, verify
from tidemill.repair.job import AmendmentJob
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.handles import newest, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.project.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was found: published `rows` that were compared, and of rows and records those that are not as they must be.

    `lost` and `doubled` are published rows that are missing or too many, and records that the account lacks or has too
    many. `different` are rows with other values. `examples` are some of all of these, in words.
    """

    rows: int
    lost: int = 0
    doubled: int = 0
    different: int = 0
    examples: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether everything is as it must be."""
        return not (self.lost or self.doubled or self.different)


def prove(project: Project, session: SparkSession, account: Account, appended: int) -> Proof:
    """Compute all published rows anew from the log; count the records in the account, in quarantine and late table."""
    reason = Reason(by="the demonstration")
    amendment = AmendmentJob(project=project, pipeline=PIPELINE, reason=reason, session=lambda: session)
    [verified] = verify(amendment, Scope())
    found = verified.differences
    counted = list(_counted(project, account, appended))
    return Proof(
        rows=found.compared - found.missing,
        lost=found.missing + sum(max(expected - there, 0) for _, there, expected in counted),
        doubled=found.extra + sum(max(there - expected, 0) for _, there, expected in counted),
        different=found.count - found.missing - found.extra,
        examples=(
            *(f"expected {each.expected}, found {each.found}" for each in found.examples),
            *(f"{what}: {there:,}, expected {expected:,}" for what, there, expected in counted if there != expected),
        ),
    )


def _counted(project: Project, account: Account, appended: int) -> Iterator[tuple[str, int, int]]:
    """What was counted, how often it is there, and how often it must be."""
    uris = project.uris(PIPELINE)
    yield "records that batches read", account.read, appended
    yield "records in quarantine", rows_of(uris.quarantine()), account.rejected
    yield "records in the late table", rows_of(uris.late()), account.late


def busiest(project: Project, count: int) -> list[tuple[str, int]]:
    """The pages with the most requests, and how many."""
    [sink] = project.pipeline(PIPELINE).sinks
    spec = project.uris(PIPELINE).published_table(sink)
    assert spec.name == TABLE
    if newest(spec) is None:
        return []
    pages: pa.Table = DeltaRsTable(spec).read().group_by("page").aggregate([("requests", "sum")])
    rows = pages.sort_by([("requests_sum", "descending"), ("page", "ascending")]).slice(0, count).to_pylist()
    return [(row["page"], row["requests_sum"]) for row in rows]
