"""Counts where records end and how far event time came, in the same pass that does the work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from tidemill.core.bind.flow import Input
from tidemill.core.contract.row_rules import warning_bits
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.protocol.account import Account
from tidemill.core.time.missed import MOST
from tidemill.core.time.watermarks import Furthest, Reached
from tidemill.engine.aggregate.branches import Branch
from tidemill.engine.aggregate.side_outputs import held_rows, late_of, rejected_of
from tidemill.engine.read.typed_rows import MARK

GREATEST = ("time_", "mark_", "before_")
_PARTLY = "partly_"
_OUTCOMES = ("read", "aggregated", "filtered", "rejected", "late")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts of one pass over one input.

    `reached` says how far accepted rows came, `too_far` where the first one beyond a bound is. `late_rows` counts a row
    once for each sink that refused it; `refused_windows` counts windows that refused a row which other windows took,
    and `refusals` such rows by published table and number of these windows. `stray_blocks` is a bitmap of the blocks
    (`tidemill.engine.read.blocks`) that hold rejected or late rows. `warned` has the rules of severity warning that
    accepted rows break, each with the number of those rows. `rejected` and `late` are rows
    (`tidemill.engine.aggregate.side_outputs`), as far as the pass could bring them back.
    """

    account: Account
    reached: Reached = field(default_factory=dict)
    too_far: Mapping[TopicPartition, int] = field(default_factory=dict)
    refused_windows: int = 0
    refusals: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    late_rows: int = 0
    stray_blocks: bytes = b""
    warned: Mapping[str, int] = field(default_factory=dict)
    rejected: pa.Table = field(default_factory=lambda: rejected_of({}), repr=False)
    late: pa.Table = field(default_factory=lambda: late_of({}), repr=False)

    @property
    def side_outputs(self) -> int:
        """The number of rows that go to quarantine or to the late table."""
        return self.account.rejected + self.late_rows


def refusals_of(told: Iterable[tuple[str, int, int]]) -> Mapping[str, Mapping[int, int]]:
    """`Counts.refusals` from published tables, numbers of windows and numbers of rows."""
    found: dict[str, dict[int, int]] = {}
    for table, windows, rows in told:
        known = found.setdefault(table, {})
        known[windows] = known.get(windows, 0) + rows
    return found


class Counter:
    """Counts the rows of one input as they pass; `result` is complete once an action has run over all of them.

    `bounds` are event times or marks of partitions: the first accepted row beyond them is looked for.
    """

    def __init__(
        self,
        source: Input,
        partitions: Sequence[int],
        branches: Sequence[Branch],
        bounds: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self.source, self._partitions, self._branches = source, tuple(partitions), tuple(branches)
        self.bounds = bounds
        self._marked = source.watermark is not None
        self._warnings, self._held = warning_bits(source.contract.row_rules), held_rows(source, branches)
        self._observation = Observation(f"tidemill {source.topic}")
        self._found: Any = None

    def attach(self, frame: DataFrame) -> DataFrame:
        """These rows, which the first action over all of them counts."""
        return frame.observe(self._observation, *(F.expr(f"{v} AS {n}") for n, v in self._in_spark.items()))

    def count(self, frame: DataFrame) -> None:
        """Count cached rows in a separate job."""
        counted = frame.selectExpr(*(f"{v} AS {n}" for n, v in self._in_spark.items()))
        self._found = counted.collect()[0]

    @property
    def _in_spark(self) -> dict[str, str]:
        late = self._late
        stray = f"bitmap_construct_agg(CASE WHEN _rejected OR ({late}) THEN CAST(_block AS BIGINT) END)"
        return {**self.expressions, "stray_blocks": stray, **self._refusals, **self._held}

    @property
    def _refusals(self) -> dict[str, str]:
        """For each branch that may have some, the numbers of windows that refused a row, with how many rows.

        All numbers above `MOST` are one. So there are as many bins as numbers, and each has one number.
        """
        most = MOST + 1
        numbers = {
            number: f"CASE WHEN {b.refused} > 0 THEN least({b.refused}, {most}L) END"
            for number, b in enumerate(self._branches)
            if b.tells_missed
        }
        return {f"{_PARTLY}{number}": f"histogram_numeric({text}, {most})" for number, text in numbers.items()}

    @property
    def _late(self) -> str:
        return " OR ".join(b.late for b in self._branches) or "false"

    @property
    def expressions(self) -> dict[str, str]:
        """SQL aggregates over the rows of all branches: sums, and maxima, whose names begin with one of `GREATEST`."""
        # An input whose rows are all discarded has no branch.
        taken = " OR ".join(f"({b.taken})" for b in self._branches) or "false"
        late = self._late
        warned = {f"warned_{b}": f"count_if(NOT _rejected AND _broken & {b}L != 0)" for b in self._warnings.values()}
        return {
            "read": "count(1)",
            "rejected": "count_if(_rejected)",
            "aggregated": f"count_if({taken})",
            "late": f"count_if(NOT _rejected AND NOT ({taken}) AND ({late}))",
            "filtered": f"count_if(NOT _rejected AND NOT ({taken}) AND NOT ({late}))",
            "refused": f"sum({' + '.join(b.refused for b in self._branches) or '0L'})",
            "refusals": f"sum({' + '.join(f'CAST({b.late} AS INT)' for b in self._branches) or '0L'})",
            **self._greatest("time", "_time"),
            **(self._greatest("mark", MARK) if self._marked else {}),
            **self._nearest,
            **warned,
        }

    @property
    def _nearest(self) -> dict[str, str]:
        far = MARK if self._marked else "_time"
        return {
            f"before_{p}": f"max(CASE WHEN NOT _rejected AND _partition = {p} AND {far} > {bound}L THEN -_offset END)"
            for p, bound in self.bounds.items()
        }

    def _greatest(self, name: str, column: str) -> dict[str, str]:
        return {
            f"{name}_{p}": f"max(CASE WHEN NOT _rejected AND _partition = {p} THEN {column} END)"
            for p in self._partitions
        }

    def _reached(self, found: Any) -> Reached:
        times = {p: time for p in self._partitions if (time := found[f"time_{p}"]) is not None}
        return {
            TopicPartition(self.source.topic, p): Furthest(time, found[f"mark_{p}"] if self._marked else None)
            for p, time in times.items()
        }

    def result(self) -> Counts:
        """The counts, after the rows were counted."""
        found = self._found if self._found is not None else self._observation.get
        held = {name: found[name] for name in self._held}
        counts = self.counts(found, bytes(found["stray_blocks"] or b""), rejected_of(held), late_of(held))
        partly = ((self._branches[int(n.removeprefix(_PARTLY))], found[n] or ()) for n in self._refusals)
        return replace(
            counts, refusals=refusals_of((b.sink.table, int(x), int(y)) for b, each in partly for x, y in each)
        )

    def counts(self, found: Any, stray_blocks: bytes, rejected: pa.Table, late: pa.Table) -> Counts:
        """Counts from the values of `expressions`, and the rows to put aside as far as they are known."""
        account = Account(**{name: found[name] for name in _OUTCOMES})
        return Counts(
            account=account,
            reached=self._reached(found),
            too_far={
                TopicPartition(self.source.topic, p): -at
                for p in self.bounds
                if (at := found[f"before_{p}"]) is not None
            },
            refused_windows=found["refused"] or 0,
            late_rows=found["refusals"] or 0,
            stray_blocks=stray_blocks,
            warned={rule: count for rule, bit in self._warnings.items() if (count := found[f"warned_{bit}"])},
            rejected=rejected,
            late=late,
        )
