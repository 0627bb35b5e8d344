"""Records that were put aside: how many for which reason, and samples of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidemill.core.plan.amendments import SideOutput
from tidemill.core.plan.slices import BatchRange
from tidemill.core.repair.side_outputs import Selection
from tidemill.inspect.recent_batches import BatchFacts
from tidemill.inspect.reject_groups import reject_groups
from tidemill_airflow.pages.sight import Sight

SAMPLES = 25
"""How many records a page shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Records of a topic that were put aside for one reason, in batches from `first` to `last`.

    The reason of a late record is the table that refused it.
    """

    topic: str
    reason: str
    records: int
    first: int
    last: int
    samples: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """What was put aside in batches from `first` to `last`; both are 0 if there are no batches."""

    output: SideOutput
    first: int
    last: int
    reasons: tuple[Reason, ...] = ()
    samples: tuple[Mapping[str, Any], ...] = ()
    total: int = 0


def aside_of(
    sight: Sight, output: SideOutput, batches: Sequence[BatchFacts], *, batch: int | None, reason: str | None
) -> Aside:
    """What these batches put aside and no replay took since; or one batch. `reason` chooses the samples."""
    ids = [batch] if batch is not None else [b.batch_id for b in batches]
    if not ids:
        return Aside(output=output, first=0, last=0)
    within = (BatchRange(min(ids), max(ids) + 1),)
    tables = sight.project.side_tables(sight.name)
    late = output is SideOutput.LATE
    columns = ("table_name",) if late else ("reasons",)
    chosen = tables.choose(output, Selection(batches=within), columns=("batch_id", "topic", *columns))
    reasons = () if chosen is None else _late(chosen.rows) if late else _rejected(chosen.rows)
    narrowed = Selection(batches=within, table=reason) if late else Selection(batches=within, reason=reason)
    first = tables.first(output, narrowed, SAMPLES)
    return Aside(
        output=output,
        first=min(ids),
        last=max(ids),
        reasons=tuple(sorted(reasons, key=lambda r: -r.records)),
        samples=() if first is None else tuple(first.chosen.rows.to_pylist()),
        total=0 if first is None else first.total,
    )


def _rejected(rows: Any) -> tuple[Reason, ...]:
    found = reject_groups(rows, by_batch=False)
    return tuple(
        Reason(
            topic=topic,
            reason=sort,
            records=each.records,
            first=each.first,
            last=each.last,
            samples=tuple(each.samples),
        )
        for (topic, sort, _), each in found.items()
    )


def _late(rows: Any) -> tuple[Reason, ...]:
    counted = rows.group_by(["topic", "table_name"]).aggregate([([], "count_all"), ("batch_id", "min_max")])
    return tuple(
        Reason(
            topic=row["topic"],
            reason=row["table_name"],
            records=row["count_all"],
            first=row["batch_id_min_max"]["min"],
            last=row["batch_id_min_max"]["max"],
        )
        for row in counted.to_pylist()
    )
