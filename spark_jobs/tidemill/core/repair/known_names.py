"""Whether a selection of side outputs names things that exist: a misspelt name finds nothing, as a true one may."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass

from tidemill.core.contract.reasons import CODES, sort_of
from tidemill.core.errors import AmendmentError, shown
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.side_outputs import Selection

_SHOWN = 10
_LONGEST = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNames:
    """What the records of a side output can be selected by.

    `partitions` were read, or have records there. `tables` are published, or refused rows that are there. `reasons`
    are the texts of all reasons in quarantine, `rules` the names of the row rules of the pipeline's contracts.
    """

    last_batch: int
    partitions: Collection[TopicPartition] = ()
    topics: Collection[str] = ()
    tables: Collection[str] = ()
    reasons: Collection[str] = ()
    rules: Collection[str] = ()


def check_names(pipeline: str, output: SideOutput, selection: Selection, known: KnownNames) -> None:
    """Refuse a selection that names something that neither the pipeline nor its side output has.

    Raises:
        AmendmentError: the batches were not planned yet, or no such topic, partition, table or reason exists.
    """
    batches = selection.batches
    if batches and min(b.from_batch for b in batches) > known.last_batch:
        last = f"the last batch is {known.last_batch}" if known.last_batch else "no batch was planned yet"
        raise AmendmentError(
            f"{pipeline}: there is no batch {batches[0].from_batch}: {last}",
            fix=f"`tidemill history {pipeline}` shows them",
        )
    topics = {*known.topics, *(place.topic for place in known.partitions)}
    if selection.topic is not None and selection.topic not in topics:
        raise _unknown(pipeline, "topic that was read", selection.topic, topics)
    if selection.partition is not None:
        _check_partition(pipeline, selection, known)
    if selection.table is not None and selection.table not in known.tables:
        raise _unknown(pipeline, "published table", selection.table, known.tables)
    if selection.reason is not None and known.reasons and not _may_be(selection.reason, known):
        what = f"reason in {output.value} that contains"
        raise _unknown(pipeline, what, selection.reason, {sort_of(reason) for reason in known.reasons})


def _check_partition(pipeline: str, selection: Selection, known: KnownNames) -> None:
    there = {p.partition for p in known.partitions if selection.topic is None or p.topic == selection.topic}
    if there and selection.partition not in there:
        of = "" if selection.topic is None else f" of {selection.topic}"
        raise AmendmentError(
            f"{pipeline}: there is no partition {selection.partition}{of} that was read; there are: "
            f"{', '.join(map(str, sorted(there)[:_SHOWN]))}",
            fix="name one of them",
        )


def _may_be(text: str, known: KnownNames) -> bool:
    """Whether some record is, or may have been, rejected for a reason that contains the text."""
    code, _, _ = text.partition("(")
    names = (*known.rules, *(each.name for each in CODES))
    return (
        any(text in name for name in names)
        or any(code == each.name for each in CODES)
        or any(text in reason or text in sort_of(reason) for reason in known.reasons)
    )


def _unknown(pipeline: str, kind: str, name: str, there: Collection[str]) -> AmendmentError:
    listed = sorted(there)
    close = difflib.get_close_matches(name, listed, n=3, cutoff=0.5)
    said = f"`{name}`" if len(name) <= _LONGEST else shown(name)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return AmendmentError(
        f"{pipeline}: there is no {kind} {said}; there are: {', '.join(listed[:_SHOWN]) or 'none'}{more}",
        fix=f"did you mean {' or '.join(f'`{each}`' for each in close)}?" if close else "name one of them",
    )
