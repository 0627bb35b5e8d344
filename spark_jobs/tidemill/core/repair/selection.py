"""Which part of the past somebody asks for: parses text of commands and forms into values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tidemill.core.errors import ConfigError, shown
from tidemill.core.log.offsets import MAX_OFFSET, TopicPartition
from tidemill.core.plan.slices import BatchRange
from tidemill.core.repair.side_outputs import Selection

PLACES = "TOPIC-PARTITION:OFFSET,..."
_NUMBER = re.compile(r"-?[0-9]{1,30}")
_PLACE = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})", re.DOTALL)
_BATCHES = re.compile(r"\s*(?P<first>[0-9]{1,30})\s*(-\s*(?P<last>[0-9]{1,30})\s*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfOffsets:
    """Half-open ranges of offsets of topic-partitions. A partition that only one of both names has no other bound.

    Without any name, all offsets that were read.
    """

    since: Mapping[TopicPartition, int]
    until: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTimes:
    """Records that the log took at `since <= timestamp < until`; None is no bound."""

    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfWindows:
    """Windows that overlap `[since, until)` in event time."""

    since: datetime
    until: datetime


Wanted = OfOffsets | OfTimes | OfWindows


def wanted(
    *,
    from_offsets: str | None = None,
    to_offsets: str | None = None,
    from_time: str | None = None,
    to_time: str | None = None,
    windows: str | None = None,
) -> Wanted:
    """The requested part: offsets, or times, or windows.

    Raises:
        ConfigError: none or several of the three are given, or a text has the wrong form.
    """
    kinds = [k for k in (from_offsets or to_offsets, from_time or to_time, windows) if k]
    if len(kinds) != 1:
        raise ConfigError(
            "a backfill wants offsets, or times, or windows",
            fix="for example from one time to another, and nothing else",
        )
    if windows:
        return windows_of("windows", windows)
    if from_time or to_time:
        since = time_of("from time", from_time) if from_time else None
        until = time_of("to time", to_time) if to_time else None
        if since is not None and until is not None and since >= until:
            raise ConfigError(f"{shown(from_time)} is not before {shown(to_time)}", fix="say the earlier time first")
        return OfTimes(since=since, until=until)
    found = OfOffsets(since=_places("from offsets", from_offsets), until=_places("to offsets", to_offsets))
    for place, offset in found.until.items():
        if found.since.get(place, 0) >= offset:
            raise ConfigError(
                f"{place}: from offset {found.since.get(place, 0)} up to, and without, {offset}: that is nothing",
                fix="say the lower offset first",
            )
    return found


def windows_of(what: str, text: str) -> OfWindows:
    """Windows from the text `FROM/TO` in ISO 8601; `what` names it in errors.

    Raises:
        ConfigError: the text has another form, or its end is not after its start.
    """
    since, separator, until = text.partition("/")
    if not separator:
        raise ConfigError(f"{what}: expected FROM/TO, found {shown(text)}", fix="for example 2026-03-01/2026-03-02")
    found = OfWindows(since=time_of(what, since), until=time_of(what, until))
    if found.since >= found.until:
        raise ConfigError(f"{what}: {shown(since)} is not before {shown(until)}", fix="say the earlier time first")
    return found


def time_of(what: str, text: str) -> datetime:
    """A datetime from text in ISO 8601; without a time zone it is UTC. `what` names the text in the error.

    Raises:
        ConfigError: it is none.
    """
    try:
        found = datetime.fromisoformat(text)
        # In the first and last hours of the calendar, UTC can be a year that there is not.
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{what}: expected a time such as 2026-03-01T12:00:00Z, found {shown(text)}", fix="write it in ISO 8601"
        ) from None


def _places(what: str, text: str | None) -> Mapping[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for part in filter(None, map(str.strip, (text or "").split(","))):
        place, _, offset = part.rpartition(":")
        named = _place(place)
        if named is None or not _NUMBER.fullmatch(offset):
            raise ConfigError(f"{what}: expected {PLACES}, found {shown(part)}", fix="for example web.access-0:1000")
        if not 0 <= (number := int(offset)) <= MAX_OFFSET:
            raise ConfigError(
                f"{what}: an offset is 0 to {MAX_OFFSET}, found {offset} in {shown(part)}",
                fix="`tidemill log ls TOPIC` shows the offsets of each partition",
            )
        if named in found:
            raise ConfigError(
                f"{what}: {named} is named twice: {shown(text)}", fix="give one offset for each partition"
            )
        found[named] = number
    return found


def place_of(text: str) -> TopicPartition:
    """A topic-partition from the text `TOPIC-PARTITION`.

    Raises:
        ConfigError: it is none.
    """
    named = _place(text)
    if named is None:
        raise ConfigError(f"expected TOPIC-PARTITION, found {shown(text)}", fix="for example web.access-0")
    return named


def _place(text: str) -> TopicPartition | None:
    found = _PLACE.fullmatch(text)
    return None if found is None else TopicPartition(found["topic"], int(found["partition"]))


def selection(  # noqa: PLR0913  each is a condition that somebody may ask for
    *,
    batch: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    offset: int | None = None,
    since: str | None = None,
    until: str | None = None,
    reason: str | None = None,
    table: str | None = None,
) -> Selection:
    """The selection of records in a side output that these conditions describe.

    Raises:
        ConfigError: a condition has the wrong form.
    """
    return Selection(
        batches=(_batches(batch),) if batch else (),
        topic=topic or None,
        partition=partition,
        offset=offset,
        since=time_of("since", since) if since else None,
        until=time_of("until", until) if until else None,
        reason=reason or None,
        table=table or None,
    )


def _batches(text: str) -> BatchRange:
    found = _BATCHES.fullmatch(text)
    first, last = (int(found["first"]), int(found["last"] or found["first"])) if found else (0, 0)
    if not 0 < first <= last:
        said = f"batch: expected a batch such as 7, or 7-9, found {shown(text)}"
        raise ConfigError(said, fix="`tidemill history` shows the batches")
    return BatchRange(first, last + 1)
