"""The service levels that a contract promises (`slaProperties`): names and units that mean nothing are refused."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.contracts.document import Node
from tidemill.contracts.elements import Elements
from tidemill.contracts.findings import Findings
from tidemill.contracts.level_values import PROMISES, check_value
from tidemill.contracts.nodes import closest, is_number, plain, shown
from tidemill.core.contract.service_level import ServiceLevel

DURATIONS = ("latency", "freshness", "retention", "frequency", "timeToDetect", "timeToNotify", "timeToRepair")
"""Service levels whose value is a number of units of time."""

OTHERS = (
    "availability",
    "endOfLife",
    "endOfSupport",
    "errorRate",
    "generalAvailability",
    "throughput",
    "timeOfAvailability",
)
"""Service levels that are moments, shares or rates."""

UNITS = {
    "second": ("s", "sec", "second", "seconds"),
    "minute": ("m", "min", "minute", "minutes"),
    "hour": ("h", "hr", "hour", "hours"),
    "day": ("d", "day", "days"),
    "week": ("w", "week", "weeks"),
    "month": ("mo", "month", "months"),
    "year": ("y", "yr", "year", "years"),
}
"""The units of time, each with its spellings."""

MEASURED = ("freshness", "latency")
"""Service levels that are measured by what commits know."""

_SECONDS = {
    "second": 1,
    "minute": 60,
    "hour": 3_600,
    "day": 86_400,
    "week": 604_800,
    "month": 2_592_000,
    "year": 31_536_000,
}

_SHORTEST = 2
_LONGEST = 10_000 * _SECONDS["year"] * 1_000_000


def check_service_levels(root: Node, findings: Findings) -> None:
    """Note service levels that nobody can mean or measure, and those that are for people alone.

    Only freshness and latency of published tables are measured.
    """
    known, elements = {name.lower(): name for name in (*DURATIONS, *OTHERS)}, Elements(root)
    for node in root.items(PROMISES):
        name, place = node.text("property"), node.child("property")
        if not name or place is None:
            continue
        if name.lower() not in known:
            _note_unknown(name, place, tuple(known.values()), findings)
            continue
        if known[name.lower()] in DURATIONS:
            _check_duration(name, node, findings)
        else:
            check_value(known[name.lower()], node, findings)
        _check_watched(elements, node, place, findings)
    _check_twice(root, findings)


def _check_watched(elements: Elements, node: Node, place: Node, findings: Findings) -> None:
    name = node.text("property")
    if name.lower() not in MEASURED:
        said = f"{PROMISES}: {name} is for people; only {' and '.join(MEASURED)} of published tables are measured"
        findings.information(place.line, said)
    elif elements.of_records:
        said = f"{PROMISES}: {name} of records is for people; that of published tables is measured"
        findings.information(place.line, said)
    else:
        _check_element(elements, node, name, findings)


def _check_element(elements: Elements, node: Node, name: str, findings: Findings) -> None:
    """Note what a level that is measured is about, if there is no such object, column or part of one."""
    element = node.child("element")
    for part in parts_of(node.text("element")) if element is not None and elements.objects else ():
        if not elements.has(part):
            said = f"{PROMISES}: {name} is about `{part}`, and there is no such object or column"
            findings.error(
                element.line if element else node.line, f"{said}, so nobody can measure it", fix=elements.hint(part)
            )


def _check_twice(root: Node, findings: Findings) -> None:
    first: dict[tuple[str, str, str], Node] = {}
    for node in root.items(PROMISES):
        name, place = node.text("property"), node.child("property")
        if not name or place is None:
            continue
        before = first.setdefault(level_key(node), place)
        if before is not place:
            said = f"{PROMISES}: {name} stands twice, first in line {before.line}: nobody can tell which of them holds"
            findings.error(place.line, said, fix="remove one of them, or give each an element or driver of its own")


def level_key(node: Node) -> tuple[str, str, str]:
    """What tells a service level from others: its property, the elements that it is about, and its driver."""
    elements = sorted(set(parts_of(node.text("element"))))
    return node.text("property").lower(), ", ".join(elements), node.text("driver")


def _note_unknown(name: str, place: Node, known: tuple[str, ...], findings: Findings) -> None:
    if hint := closest(name, known):
        findings.error(place.line, f"{PROMISES}: `{name}` is no service level of the standard", fix=hint)
    else:
        findings.information(place.line, f"{PROMISES}: `{name}` is not known, and not used")


def _check_duration(name: str, node: Node, findings: Findings) -> None:
    value, unit = node.child("value"), node.child("unit")
    if unit is not None and isinstance(unit.value, str) and unit.value.lower() not in _spellings():
        # A unit of two letters is another one, not a slip of the pen: `ms` is not meant as `m`.
        meant = closest(unit.value, _spellings()) if len(unit.value) > _SHORTEST else ""
        fix = (
            meant or f"write one of {', '.join(UNITS)}; a part of a second is a fraction, such as value: 0.25, unit: s"
        )
        findings.error(unit.line, f"{PROMISES}: the unit of {name} is {shown(unit)}, which is no unit of time", fix=fix)
    is_text = value is not None and isinstance(value.value, str)
    if value is None or (unit is None and is_text and name.lower() not in MEASURED):
        return
    said = ""
    if not is_number(value) or not isinstance(value.value, int | float) or value.value <= 0:
        said = f"must be a number above 0, found {shown(value)}"
    elif unit is None:
        said = f"is {shown(value)} without a unit, so nobody knows how long that is"
    elif (length := duration_of(node)) is not None and not 0 < length <= _LONGEST:
        said = f"must be from a microsecond to 10,000 years, found {shown(value)} with unit {unit.value}"
    if said:
        fix = "write a number as value and its unit as unit, such as value: 4, unit: h"
        findings.error(value.line, f"{PROMISES}: {name} {said}", fix=fix)


def _spellings() -> tuple[str, ...]:
    return tuple(spelling for spellings in UNITS.values() for spelling in spellings)


def all_levels(root: Node) -> Iterator[ServiceLevel]:
    """The freshness and latency that a document promises. A month has 30 days, and a year 365."""
    for node in root.items(PROMISES):
        if (name := node.text("property").lower()) in MEASURED:
            yield ServiceLevel(name=name, text=_text(node), most=duration_of(node), element=node.text("element"))


def parts_of(element: str) -> list[str]:
    """The objects and columns that a service level names."""
    return [part.strip() for part in element.split(",") if part.strip()]


def _text(node: Node) -> str:
    value, unit = node.child("value"), node.child("unit")
    return " ".join(str(plain(part)) for part in (value, unit) if part is not None)


def duration_of(node: Node) -> int | None:
    """The time that a service level says, in microseconds; None if it says none, or no unit."""
    value, spelt = node.child("value"), node.text("unit").lower()
    unit = next((unit for unit, spellings in UNITS.items() if spelt in spellings), None)
    if value is None or unit is None or not isinstance(value.value, int | float) or not is_number(value):
        return None
    length = value.value * _SECONDS[unit] * 1_000_000
    return round(length) if length <= _LONGEST else _LONGEST + 1
