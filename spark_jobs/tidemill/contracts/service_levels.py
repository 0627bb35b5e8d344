"""The service levels that a contract promises (`slaProperties`): names and units that mean nothing are refused."""

from __future__ import annotations

from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings
from tidemill.contracts.nodes import closest, is_number, plain, shown
from tidemill.core.contract.service_level import ServiceLevel

PROMISES = "slaProperties"

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


def check_service_levels(root: Node, findings: Findings) -> None:
    """Note service levels that nobody can mean. Only freshness and latency are measured."""
    known = {name.lower(): name for name in (*DURATIONS, *OTHERS)}
    for node in root.items(PROMISES):
        name, place = node.text("property"), node.child("property")
        if not name or place is None:
            continue
        if name.lower() not in known:
            _note_unknown(name, place, tuple(known.values()), findings)
        elif known[name.lower()] in DURATIONS:
            _check_duration(name, node, findings)


def _note_unknown(name: str, place: Node, known: tuple[str, ...], findings: Findings) -> None:
    if hint := closest(name, known):
        findings.error(place.line, f"{PROMISES}: `{name}` is no service level of the standard", fix=hint)
    else:
        findings.information(place.line, f"{PROMISES}: `{name}` is not known, and not used")


def _check_duration(name: str, node: Node, findings: Findings) -> None:
    value, unit = node.child("value"), node.child("unit")
    if unit is not None and isinstance(unit.value, str) and unit.value.lower() not in _spellings():
        fix = closest(unit.value, _spellings()) or f"write one of {', '.join(UNITS)}"
        findings.error(unit.line, f"{PROMISES}: the unit of {name} is {shown(unit)}, which is no unit of time", fix=fix)
    if value is None or (unit is None and isinstance(value.value, str)):
        return
    if not is_number(value) or not isinstance(value.value, int | float) or value.value <= 0:
        findings.error(
            value.line,
            f"{PROMISES}: {name} must be a number above 0, found {shown(value)}",
            fix="write a number as value and its unit as unit, such as value: 4, unit: h",
        )


def _spellings() -> tuple[str, ...]:
    return tuple(spelling for spellings in UNITS.values() for spelling in spellings)


def levels_of(root: Node, names: tuple[str, ...]) -> tuple[ServiceLevel, ...]:
    """The freshness and latency that a contract promises for a schema object; `names` are its name and its columns.

    A level without an element is about every object. A month has 30 days, and a year 365.
    """
    return tuple(
        ServiceLevel(
            name=node.text("property").lower(),
            text=_text(node),
            most=duration_of(node),
            element=node.text("element"),
        )
        for node in root.items(PROMISES)
        if node.text("property").lower() in MEASURED and _is_about(node.text("element"), names)
    )


def _is_about(element: str, names: tuple[str, ...]) -> bool:
    parts = [part.strip() for part in element.split(",") if part.strip()]
    return not parts or any(part.partition(".")[0] in names for part in parts)


def _text(node: Node) -> str:
    value, unit = node.child("value"), node.child("unit")
    return " ".join(str(plain(part)) for part in (value, unit) if part is not None)


def duration_of(node: Node) -> int | None:
    """The time that a service level says, in microseconds; None if it says none, or no unit."""
    value, spelt = node.child("value"), node.text("unit").lower()
    unit = next((unit for unit, spellings in UNITS.items() if spelt in spellings), None)
    if value is None or unit is None or not isinstance(value.value, int | float) or not is_number(value):
        return None
    return round(value.value * _SECONDS[unit] * 1_000_000)
