"""The service levels that a contract promises (`slaProperties`): names and units that mean nothing are refused."""

from __future__ import annotations

from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings
from tidemill.contracts.nodes import closest, is_number, shown

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


def check_service_levels(root: Node, findings: Findings) -> None:
    """Note service levels that nobody can mean. Others are information: Tidemill does not check them."""
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
