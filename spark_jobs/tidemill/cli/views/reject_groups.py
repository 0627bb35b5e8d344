"""Prints `tidemill quarantine ls`: how many records were rejected for which reason, in which batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidemill.cli.output import console, grid, many, printable
from tidemill.cli.views.log import print_json
from tidemill.core.contract.reasons import detail_of, sort_of
from tidemill.core.plan.amendments import SideOutput

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from tidemill.core.repair.side_outputs import Selection
    from tidemill.repair.job import AmendmentJob

_SAMPLES = 3

Key = tuple[str, str, int]
"""Topic, sort of reason, and the batch if batches are counted separately, otherwise 0."""


@dataclass
class Group:
    """Rejected records with the same sort of reason, from batch `first` to `last`, with samples of the details."""

    first: int
    last: int
    records: int = 0
    samples: list[str] = field(default_factory=list)


def show_groups(amendment: AmendmentJob, wanted: Selection, *, by_batch: bool, as_json: bool) -> None:
    """Print how many records were rejected, by topic and sort of reason, with samples of the details.

    A record with several reasons counts for each of them. The values of the records are not read.

    Raises:
        AmendmentError: nothing is selected, by a name that does not exist.
    """
    from tidemill.repair.named import check_selected

    chosen = amendment.side_tables.choose(SideOutput.QUARANTINE, wanted, columns=("reasons",))
    if chosen is None or not chosen.rows.num_rows:
        check_selected(amendment, SideOutput.QUARANTINE, wanted)
    groups = {} if chosen is None else _groups(chosen.take(None).rows, by_batch=by_batch)
    if as_json:
        for line in _lines(groups):
            print_json(line)
        return
    _show(groups, by_batch=by_batch)
    records = 0 if chosen is None else chosen.rows.num_rows
    listed = sum(found.records for found in groups.values())
    more = "; a record is listed under each of its reasons" if listed > records else ""
    console().print(f"{many(records, 'record')}{more}")


def _groups(rows: pa.Table, *, by_batch: bool) -> dict[Key, Group]:
    found: dict[Key, Group] = {}
    for row in _texts(rows):
        key = row["topic"], sort_of(row["reason"]), row["batch_id"] if by_batch else 0
        group = found.setdefault(key, Group(first=row["batch_id"], last=row["batch_id"]))
        group.first, group.last = min(group.first, row["batch_id"]), max(group.last, row["batch_id"])
        group.records += row["records"]
        if len(group.samples) < _SAMPLES and (detail := detail_of(row["reason"])) and detail not in group.samples:
            group.samples.append(detail)
    return dict(sorted(found.items()))


def _texts(rows: pa.Table) -> Iterator[Mapping[str, Any]]:
    """Yield how often each text appears in a topic in each batch, in the order of the rows."""
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    column = rows["reasons"].combine_chunks()
    of = pc.list_parent_indices(column)
    told = pa.table(
        {
            "batch_id": rows["batch_id"].take(of),
            "topic": rows["topic"].take(of),
            "reason": pc.list_flatten(column),
        }
    )
    names = ["batch_id", "topic", "reason"]
    counted = told.group_by(names, use_threads=False).aggregate([([], "count_all")])
    for batch in counted.rename_columns({"count_all": "records"}).to_batches():
        yield from batch.to_pylist()


def _lines(groups: Mapping[Key, Group]) -> Iterator[dict[str, object]]:
    for (topic, sort, batch), found in groups.items():
        line = {"batch_id": batch} if batch else {}
        batches = {"first_batch": found.first, "last_batch": found.last}
        yield {**line, "topic": topic, "reason": sort, "records": found.records, **batches, "samples": found.samples}


def _show(groups: Mapping[Key, Group], *, by_batch: bool) -> None:
    places = ("batch",) if by_batch else ("first batch", "last batch")
    table = grid(*places, "topic", "reason", "records", "for example", numbers=(*places, "records"))
    for (topic, sort, _), found in groups.items():
        batches = (found.first,) if by_batch else (found.first, found.last)
        example = printable(found.samples[0]) if found.samples else ""
        table.add_row(*map(str, batches), topic, sort, f"{found.records:,}", example)
    console().print(table)
