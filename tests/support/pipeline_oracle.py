"""What a drawn pipeline gives, computed as plainly as can be: one record at a time, and all windows from all records.

It knows nothing of panes, state, firings, or of the engines. After each batch, the published windows are those of all
records so far, each with the records that it accepted when they came. Nothing has a tolerance.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from engine.decode.slow_decoders import slow_decode
from support.drawn_expressions import COLUMNS, FILTERS, Row
from support.projects import NOW, sorted_rows
from support.random_pipelines import ALL_AGGREGATES, ALL_WINDOWS, BROKEN, CLOCK, DELAY, SECOND, Drawn, Table, Window
from support.wide_expressions import WIDE_COLUMNS, WIDE_FILTERS
from tidemill.core.contract.contract import Contract

_FILTERS, _COLUMNS = {**FILTERS, **WIDE_FILTERS}, {**COLUMNS, **WIDE_COLUMNS}

BEGINNING, END = -(2**63), 2**63 - 1
"""The watermarks before all records and after the last one."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Bounds = tuple[int, int]
Place = tuple[Bounds, tuple[Any, ...]]
"""A window and a key."""


@dataclass(kw_only=True)
class Told:
    """What a batch counts: where records end, refused windows and what each missed, rules, rows; and where time is."""

    account: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    missed: Counter[tuple[str, int]] = field(default_factory=Counter)
    warned: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    published: Counter[str] = field(default_factory=Counter)
    watermark: int = BEGINNING
    clocks: Mapping[int, tuple[int | None, int | None]] = field(default_factory=dict)


class Taken(NamedTuple):
    """A row that entered a table with its batch, its event time, its key, and the windows that accepted it."""

    batch: int
    time: int
    key: tuple[Any, ...]
    windows: tuple[Bounds, ...]
    row: Row


@dataclass(kw_only=True)
class Oracle:
    """The batches of a drawn pipeline. `contract` says what records are, `tables` what readers see after each batch."""

    drawn: Drawn
    contract: Contract
    watermark: int = BEGINNING
    batch: int = 0
    offsets: Counter[int] = field(default_factory=Counter)
    clocks: dict[int, tuple[int | None, int | None]] = field(default_factory=dict)
    taken: dict[str, list[Taken]] = field(default_factory=dict)
    quarantine: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)

    def run(self, fed: Sequence[Iterable[bytes | None]], *, drain: bool = False) -> Told:
        """A batch of records of some partitions.

        Raises:
            Overflow: it fails.
        """
        told, before = Told(), {table.name: self._visible(table) for table in self.drawn.tables}
        self.batch += 1
        for partition, values in enumerate(fed):
            self.clocks.setdefault(partition, (None, None))
            for value in values:
                self._place(partition, value, told)
                self.offsets[partition] += 1
        self._advance(drain=drain)
        for table in self.drawn.tables:
            there = self._visible(table)
            told.published[table.name] = sum(
                place not in before[table.name] or any(each.batch == self.batch for each in rows)
                for place, rows in there.items()
            )
        told.watermark, told.clocks = self.watermark, dict(self.clocks)
        return told

    @property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """All rows that readers can see, by table."""
        found = {table.name: sorted_rows(self._published(table)) for table in self.drawn.tables}
        return {**found, "quarantine": sorted_rows(self.quarantine), "late": sorted_rows(self.late)}

    def _place(self, partition: int, value: bytes | None, told: Told) -> None:
        """Put a record where it belongs, and count it."""
        told.account["read"] += 1
        row = slow_decode(self.contract, value)
        place = {"topic": "events", "partition": partition, "offset": self.offsets[partition], "timestamp": NOW}
        if reasons := _reasons(row, value):
            told.account["rejected"] += 1
            told.reasons.update(re.sub(": .*", "", reason) for reason in reasons)
            self.quarantine.append({**place, "reasons": reasons, "value": value})
            return
        assert row is not None
        told.warned += row["a"] is not None and row["a"] % 2 == 0
        time = micros(row["ts"])
        furthest, mark = self.clocks[partition]
        if self.drawn.told and row["f"]:
            mark = time if mark is None else max(mark, time)
        self.clocks[partition] = max(time if furthest is None else furthest, time), mark
        told.account[self._enter(row, time, {**place, "value": value}, told)] += 1

    def _enter(self, row: Row, time: int, place: Row, told: Told) -> str:
        """Bring an accepted row to all tables: what becomes of it."""
        if any(_FILTERS[text](row) is not True for text in self.drawn.filters):
            return "filtered"
        used = {column for table in self.drawn.tables for column in table.columns}
        added = {name: _COLUMNS[name][text](row) for name, text in self.drawn.columns.items() if name in used}
        whole = {**row, **added, "_place": (time, place["partition"], place["offset"])}
        fates = list[bool]()
        for table in self.drawn.tables:
            windows = tuple(windows_of(ALL_WINDOWS[table.window], time)) if table.bounded else ((BEGINNING, END),)
            accepted = tuple(each for each in windows if each[1] + table.lateness * SECOND > self.watermark)
            fates.append(bool(accepted))
            if accepted:
                told.refused += len(windows) - len(accepted)
                told.missed.update((table.name, start) for start, _ in windows[: len(windows) - len(accepted)])
                key = tuple(whole[name] for name in table.keys)
                self.taken.setdefault(table.name, []).append(Taken(self.batch, time, key, accepted, whole))
            else:
                self.late.append({**place, **self._late(table, time, windows[-1], whole)})
        return "aggregated" if any(fates) else "late"

    def _late(self, table: Table, time: int, window: Bounds, row: Row) -> dict[str, Any]:
        return {
            "event_time": moment(time),
            "table_name": table.name,
            "window_start": moment(window[0]),
            "window_end": moment(window[1]),
            "watermark": moment(self.watermark),
            "row": as_json({name: row[name] for name in table.columns}),
        }

    def _advance(self, *, drain: bool) -> None:
        """Move the watermark as far as the slowest partition is, never back; to the end if the input has ended."""
        reached = [mark if self.drawn.told else _less(time) for time, mark in self.clocks.values()]
        slowest = min(BEGINNING if each is None else each for each in reached)
        self.watermark = END if drain else max(self.watermark, slowest)

    def _visible(self, table: Table) -> Mapping[Place, list[Taken]]:
        """The windows that readers see, with their rows."""
        there = self.taken.get(table.name, [])
        window = ALL_WINDOWS[table.window]
        found: dict[Place, list[Taken]] = {}
        for bounds, each in _joined(there, window.gap) if window.gap else _apart(there):
            if table.trigger == "on_update" or bounds[1] <= self.watermark:
                found.setdefault((bounds, each.key), []).append(each)
        return found

    def _published(self, table: Table) -> Iterator[dict[str, Any]]:
        for ((start, end), key), taken in self._visible(table).items():
            bounds = {"window_start": moment(start), "window_end": moment(end)} if table.bounded else {}
            rows = [each.row for each in taken]
            values = {name: ALL_AGGREGATES[call].of(rows) for name, call in table.aggregates.items()}
            yield {**bounds, **dict(zip(table.keys, key, strict=True)), **values}


def _reasons(row: Row | None, value: bytes | None) -> list[str]:
    """Why a record is rejected; empty for a good one. `row` is None if it cannot be decoded."""
    if value in BROKEN:
        return [BROKEN[value]]
    if row is None:
        return [_undecoded(json.loads(value or b""))]
    assert micros(row["ts"]) <= micros(CLOCK + timedelta(hours=1))
    t, u, a, i, f = (row[name] for name in "tuaif")
    broken = {
        "t.maxLength": t is not None and len(t) > 9,
        "u.pattern": u is not None and not re.fullmatch("[a-zä?]*", u),
        "a.minimum": a is not None and a < -9_000_000_000_000_000_000,
        "small": i is not None and i >= 100 and f is False,
    }
    return [name for name, is_so in broken.items() if is_so]


def _undecoded(record: Mapping[str, Any]) -> str:
    """What is wrong with a record that has all types of its contract, but lacks a field or has a large number."""
    if (record.get("i") or 0) >= 2**31:
        return f"too_large(i): `i`: number {record['i']} does not fit 32 bits"
    assert "ts" not in record
    return "missing(ts): `ts`: required, but missing"


def windows_of(window: Window, time: int) -> Iterator[Bounds]:
    """All windows that contain a time, earliest first; of a session, the one that a record alone makes."""
    if window.gap:
        yield time, time + window.gap
        return
    if window.unit:
        yield _of_calendar(window.unit, moment(time).astimezone(ZoneInfo(window.zone)))
        return
    # Any start that is aligned and early enough is good to begin with.
    start = window.offset + (time - window.offset) // window.slide * window.slide - 100 * window.slide
    for first in range(start, time + 1, window.slide):
        if first <= time < first + window.size:
            yield first, first + window.size


def _of_calendar(unit: str, local: datetime) -> Bounds:
    """The day, the week or the month that a moment belongs to in its zone."""
    start = local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    if unit == "month":
        start = start.replace(day=1)
        end = (start + timedelta(days=31)).replace(day=1)
    else:
        start -= timedelta(days=start.weekday() if unit == "week" else 0)
        end = start + timedelta(days=7 if unit == "week" else 1)
    return micros(start.replace(tzinfo=local.tzinfo)), micros(end.replace(tzinfo=local.tzinfo))


def _apart(there: Sequence[Taken]) -> Iterator[tuple[Bounds, Taken]]:
    """Each row in each window that accepted it."""
    for each in there:
        for bounds in each.windows:
            yield bounds, each


def _joined(there: Sequence[Taken], gap: int) -> Iterator[tuple[Bounds, Taken]]:
    """Each row in its session: a session goes on while the next record of its key comes no later than its end."""
    by_key: dict[tuple[Any, ...], list[Taken]] = {}
    for each in there:
        by_key.setdefault(each.key, []).append(each)
    for rows in by_key.values():
        session: list[Taken] = []
        for each in [*sorted(rows, key=lambda taken: taken.time), None]:
            if session and (each is None or each.time > session[-1].time + gap):
                bounds = session[0].time, session[-1].time + gap
                yield from ((bounds, one) for one in session)
                session = []
            if each is not None:
                session.append(each)


def micros(at: Any) -> int:
    """A moment as microseconds since 1970."""
    return (at - EPOCH) // timedelta(microseconds=1)


def moment(time: int) -> datetime:
    """Microseconds since 1970 as a moment."""
    return EPOCH + timedelta(microseconds=time)


def _less(time: int | None) -> int | None:
    return None if time is None else time - DELAY


def as_json(row: Row) -> dict[str, Any]:
    """A row as one reads it from JSON: without nulls, and dates as text."""
    return {name: _in_json(value) for name, value in row.items() if value is not None}


def _in_json(value: Any) -> Any:
    if isinstance(value, float):
        return Decimal(value)
    return str(value) if isinstance(value, date) else value
