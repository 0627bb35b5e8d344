"""The values of service levels that are no times: moments, hours of a day, shares and rates. People read them."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal

from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings
from tidemill.contracts.nodes import is_number, shown

PROMISES = "slaProperties"

_MOMENTS = ("endOfLife", "endOfSupport", "generalAvailability")
_HOURS = "timeOfAvailability"
_CLOCK = r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?|24:00(?::00)?"
_SPAN = rf"(?:{_CLOCK})(?: ?- ?(?:{_CLOCK}))?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+](?:0?[0-9]|1[0-4]):[0-5][0-9]))?"
_CLOCKS = re.compile(rf"{_SPAN}{_ZONE}(?:, ?{_SPAN}{_ZONE})*")
_RATE = re.compile(r"(?P<number>[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?)(?: ?(?P<percent>%))?")
_PERCENT, _SHARE = ("percent", "%", "pct"), ("share", "ratio", "fraction")


def check_value(name: str, node: Node, findings: Findings) -> None:
    """Note a value that means nothing for the service level `name`, as the standard calls it."""
    value = node.child("value")
    if value is None:
        return
    if name in _MOMENTS:
        expected, example = ("" if _is_moment(value) else "a day or a moment"), "write it like 2030-01-31"
    elif name == _HOURS:
        expected, example = (
            ("" if _has_hours(value) else "hours of a day"),
            "write it like '09:00-17:00', with hours up to 24 and minutes up to 59",
        )
    else:
        expected, example = _rate_of(name, node, value), "write a number as value, and its unit as unit"
    if expected:
        findings.error(value.line, f"{PROMISES}: {name} must be {expected}, found {shown(value)}", fix=example)


def _is_moment(value: Node) -> bool:
    text = value.value
    try:
        return isinstance(text, str) and text.isascii() and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _has_hours(value: Node) -> bool:
    return isinstance(value.value, str) and _CLOCKS.fullmatch(value.value) is not None


def _rate_of(name: str, node: Node, value: Node) -> str:
    """What the value of a share or rate must be, if it is not that; otherwise empty."""
    found = _RATE.fullmatch(str(value.value)) if isinstance(value.value, str) or is_number(value) else None
    if found is None:
        return "a number"
    number, unit = Decimal(found["number"]), node.text("unit").lower()
    if number < 0 or (name != "errorRate" and number == 0):
        return "a number above 0" if name != "errorRate" else "a number from 0 on"
    if found["percent"] and unit and unit not in _PERCENT:
        return f"a number without %, because its unit is {unit}"
    if found["percent"] and name == "throughput":
        return "a number without %, because it has no limit"
    if unit in _SHARE:
        return "at most 1" if number > 1 else ""
    # A thing is there the whole time at most, whatever its unit is called.
    is_percent = bool(found["percent"]) or unit in _PERCENT or name == "availability"
    return "at most 100 percent" if is_percent and number > 100 else ""
