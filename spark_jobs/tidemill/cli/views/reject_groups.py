"""Prints `tidemill quarantine ls`: how many records were rejected for which reason, in which batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tidemill.cli.output import console, grid
from tidemill.cli.views.log import print_json
from tidemill.core.counts import many
from tidemill.core.errors import printable
from tidemill.core.plan.amendments import SideOutput

if TYPE_CHECKING:
    from tidemill.core.repair.side_outputs import Selection
    from tidemill.inspect.reject_groups import Group, Key
    from tidemill.repair.job import AmendmentJob


def show_groups(amendment: AmendmentJob, wanted: Selection, *, by_batch: bool, as_json: bool) -> None:
    """Print how many records were rejected, by topic and sort of reason, with samples of the details.

    A record with several reasons counts for each of them. The values of the records are not read.

    Raises:
        AmendmentError: nothing is selected, by a name that does not exist.
    """
    from tidemill.inspect.reject_groups import reject_groups
    from tidemill.repair.named import check_selected

    chosen = amendment.side_tables.choose(SideOutput.QUARANTINE, wanted, columns=("reasons",))
    if chosen is None or not chosen.rows.num_rows:
        check_selected(amendment, SideOutput.QUARANTINE, wanted)
    groups = {} if chosen is None else reject_groups(chosen.take(None).rows, by_batch=by_batch)
    if as_json:
        for line in _lines(groups):
            print_json(line)
        return
    _show(groups, by_batch=by_batch)
    records = 0 if chosen is None else chosen.rows.num_rows
    listed = sum(found.records for found in groups.values())
    more = "; a record is listed under each of its reasons" if listed > records else ""
    console().print(f"{many(records, 'record')}{more}")


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
