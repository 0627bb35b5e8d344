"""Compares the tables with what they should hold, row by row: what was lost, doubled, or wrong in another way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from demo.oracle import VALUES, Contents, Place, Window, show_window

SKETCH_IS_EXACT = 300
"""Up to this many different values, a sketch with 4,096 buckets gives the same result however it was merged."""

_SKETCH_ERROR = 0.1
"""With more values, two orders of merging differ by less than this share: six standard errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """How tables differ from what they must hold, in records. `different` counts rows that are wrong in another way.

    `examples` describes some of the differences.
    """

    lost: int
    doubled: int
    different: int
    examples: tuple[str, ...] = ()

    @property
    def none(self) -> bool:
        """Whether there is no difference."""
        return not (self.lost or self.doubled or self.different)


def compare(found: Contents, expected: Contents, *, appended: int) -> Differences:
    """Compare the tables with what they must hold, for a log of `appended` records."""
    lost, doubled = Counter(_lost(found, expected)), Counter(_doubled(found, expected))
    wrong = list(_wrong(found, expected))
    known = expected.requests + sum(sum(places.values()) for places in expected.side_outputs.values())
    if known < appended:
        lost[f"{appended - known} records of the log were not found in it"] += appended - known
    if known > appended:
        doubled[f"{known - appended} records were read by two batches"] += known - appended
    return Differences(
        lost=lost.total(),
        doubled=doubled.total(),
        different=len(wrong),
        examples=(*_some(lost), *_some(doubled), *wrong[:5]),
    )


def _some(differences: Counter[str]) -> list[str]:
    return [text for text, _ in differences.most_common(5)]


def _lost(found: Contents, expected: Contents) -> dict[str, int]:
    lost = {}
    for window, rows in expected.rows.items():
        missing = _requests(rows) - _requests(found.rows.get(window, ()))
        if missing > 0:
            lost[f"{show_window(window)}: {missing} requests are missing"] = missing
    for outcome, places in expected.side_outputs.items():
        for place, count in (places - found.side_outputs.get(outcome, Counter[Place]())).items():
            lost[f"{outcome} record {_shown(place)} is not kept"] = count
    return lost


def _doubled(found: Contents, expected: Contents) -> dict[str, int]:
    doubled = {}
    for window, rows in found.rows.items():
        extra = _requests(rows) - _requests(expected.rows.get(window, ()))
        if extra > 0:
            doubled[f"{show_window(window)}: {extra} requests too many"] = extra
    for outcome, places in found.side_outputs.items():
        for place, count in places.items():
            if count > 1:
                doubled[f"{outcome} record {_shown(place)} is kept {count} times"] = count - 1
    return doubled


def _wrong(found: Contents, expected: Contents) -> Iterator[str]:
    for window, rows in found.rows.items():
        if len(rows) > 1:
            yield f"{show_window(window)} is there {len(rows)} times"
        yield from _wrong_values(window, rows[0], expected.rows.get(window, ({},))[0])
    for outcome, places in found.side_outputs.items():
        for place in places:
            if place not in expected.side_outputs.get(outcome, ()):
                yield f"record {_shown(place)} is {outcome}, but had not to be"


def _wrong_values(window: Window, row: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[str]:
    # A wrong number in `requests` is counted as lost or doubled.
    for name in VALUES:
        if name != "requests" and expected and not _equal(name, row[name], expected[name]):
            yield f"{show_window(window)}: {name} is {row[name]}, expected {expected[name]}"


def _equal(name: str, value: Any, expected: Any) -> bool:
    if name == "visitors" and min(value, expected) > SKETCH_IS_EXACT:
        return bool(abs(value - expected) <= _SKETCH_ERROR * expected)
    return bool(value == expected)


def _requests(rows: Any) -> int:
    return sum(row["requests"] for row in rows)


def _shown(place: Place) -> str:
    partition, offset = place
    return f"{partition}:{offset}"
