"""The demonstration from beginning to end. The order of its acts is the order of this file."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tidemill.core.contract.reasons import tally_reasons
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.summary import commit_json
from tidemill.demo.child import Facts, Run, execute
from tidemill.demo.proof import Proof, busiest, prove
from tidemill.demo.site import PIPELINE, TABLE, Source, make_site, write_file, write_lines
from tidemill.demo.traffic import Kind, Line, Traffic, lines
from tidemill.run.loop import Order, run_batches, warm_up_audit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.project.project import Project

BATCHES = 10
"""How many batches the log is divided into."""

KILLED_BATCH = 5

KILL = f"published:{TABLE}"
"""Where a process is killed: the rows of a batch are published, but the ledger does not say yet that they count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What to demonstrate: generated traffic, or the lines of `file`. The project is created in `folder`."""

    folder: Path
    source: Source
    traffic: Traffic = field(default_factory=Traffic)
    file: Path | None = None


class Audience(Protocol):
    """Receives what happens in the demonstration."""

    def begins(self, what: str) -> None:
        """Something begins that takes a while."""
        ...

    def log_written(self, records: int, kinds: Mapping[Kind, int]) -> None:
        """The log was written. `kinds` is empty for a file of the user."""
        ...

    def committed(self, batch: Facts) -> None:
        """A batch has committed."""
        ...

    def killed(self, batch_id: int, place: str) -> None:
        """A process was killed in the middle of a batch."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The result. `reasons` counts the quarantined records by sort of reason; `killed_at` is place@batch.

    `proof` holds the published rows against what the log gives, as `tidemill verify` does, and the account against
    what was appended and put aside.
    """

    project: Project
    batches: int
    killed_at: str | None
    account: Account
    proof: Proof
    reasons: Mapping[str, int]
    pages: tuple[tuple[str, int], ...]
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether nothing was lost, doubled or changed."""
        return self.proof.holds

    def as_json(self) -> dict[str, object]:
        """The figures, for programs."""
        parts = ("read", "aggregated", "filtered", "rejected", "late", "shed")
        return {
            "batches": self.batches,
            "killed_at": self.killed_at,
            **{part: getattr(self.account, part) for part in parts},
            "lost": self.proof.lost,
            "doubled": self.proof.doubled,
            "seconds": round(self.seconds, 1),
        }


def tell(
    script: Script, audience: Audience, session: Callable[[Project], AbstractContextManager[SparkSession]]
) -> Ending:
    """Write a log, run batches and kill one, run to the end, prove it; leave the figures beside the folder.

    `session` returns a context manager with a Spark session in this process.

    Raises:
        ConfigError: the folder holds something else, or the reference pipeline is missing.
        TidemillError: a batch failed in an unplanned way.
    """
    started = time.monotonic()
    project = make_site(script.folder, script.source)
    appended = _write_log(project, script, audience)
    limit = max(-(-appended // BATCHES), 1)
    killed_at = _run_until_killed(project, limit, -(-appended // limit), audience)
    warm_up_audit(project.pipeline(PIPELINE))
    audience.begins("this process takes over")
    with session(project) as spark:
        if killed_at:
            _take_over(project, limit, audience, spark)
        commits = _commits(project)
        account = sum((a for c in commits for a in c.accounts.values()), Account())
        audience.begins("computing everything anew from the log, as `tidemill verify` does")
        proof = prove(project, spark, account, appended)
    ending = Ending(
        project=project,
        batches=len(commits),
        killed_at=killed_at,
        account=account,
        proof=proof,
        reasons=_reasons(commits),
        pages=tuple(busiest(project, 10)),
        seconds=time.monotonic() - started,
    )
    figures = script.folder.with_name(f"{script.folder.name}.json")
    figures.write_text(json.dumps(ending.as_json(), indent=2) + "\n")
    return ending


def _write_log(project: Project, script: Script, audience: Audience) -> int:
    if script.file is not None:
        audience.begins(f"appending {script.file}")
        count = write_file(project, script.file)
        audience.log_written(count, {})
        return count
    kinds: Counter[Kind] = Counter()

    def counted(line: Line) -> Line:
        kinds[line.kind] += 1
        return line

    made = map(counted, lines(script.traffic))
    begin = f"appending {script.traffic.records:,} made-up requests"
    audience.begins(begin)
    count = write_lines(project, made, written=lambda so_far: audience.begins(f"{begin}: {so_far:,}"))
    audience.log_written(count, kinds)
    return count


def _run_until_killed(project: Project, limit: int, batches: int, audience: Audience) -> str | None:
    """Run batches in a process of their own until it is killed. Returns where; None if nothing was published."""
    audience.begins("batches run in a process of their own, until it is killed")
    # Batch 5 may have nothing to publish yet; the last batch closes every window.
    failpoint = f"{KILL}@{min(KILLED_BATCH, batches)}+"
    run = Run(project=project.folder, pipeline=PIPELINE, limit=limit, drain=True, failpoint=failpoint)
    if execute(run, audience.committed):
        return None
    opened = project.ledger(PIPELINE).view().open_batch
    batch_id = opened.plan.batch_id if opened else 0
    audience.killed(batch_id, KILL)
    return f"{KILL}@{batch_id}"


def _take_over(project: Project, limit: int, audience: Audience, spark: SparkSession) -> None:
    order = Order(limit=limit, drain=True, most=None)
    for commit in run_batches(project, PIPELINE, order, session=lambda: spark):
        audience.committed(commit_json(commit))


def _commits(project: Project) -> list[Committed]:
    return [e.event for e in project.ledger(PIPELINE).entries() if isinstance(e.event, Committed)]


def _reasons(commits: list[Committed]) -> Mapping[str, int]:
    reasons: Counter[str] = Counter()
    for commit in commits:
        reasons.update(tally_reasons(commit.reasons.items()))
    return dict(reasons.most_common())
