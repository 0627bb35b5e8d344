"""The values of service levels that are no times: moments, hours of a day, shares and rates. People read them."""

from __future__ import annotations

import math
import re
from datetime import datetime

from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings
from tidemill.contracts.nodes import is_number, shown

PROMISES = "slaProperties"

_MOMENTS = ("endOfLife", "endOfSupport", "generalAvailability")
_HOURS = "timeOfAvailability"
_CLOCK = re.compile(r"(\d+):(\d+)")


def check_value(name: str, node: Node, findings: Findings) -> None:
    """Note a value that means nothing for the service level `name`, as the standard calls it."""
    value = node.child("value")
    if value is None:
        return
    if name in _MOMENTS:
        expected, example = ("" if _is_moment(value) else "a day or a moment"), "write it like 2030-01-31"
    elif name == _HOURS:
        expected, example = ("" if _has_hours(value) else "hours of a day"), "write it like '09:00-17:00'"
    else:
        expected, example = _rate_of(name, node, value), "write a number as value, and its unit as unit"
    if expected:
        findings.error(value.line, f"{PROMISES}: {name} must be {expected}, found {shown(value)}", fix=example)


def _is_moment(value: Node) -> bool:
    try:
        return isinstance(value.value, str) and bool(datetime.fromisoformat(value.value))
    except ValueError:
        return False


def _has_hours(value: Node) -> bool:
    clocks = _CLOCK.findall(value.value) if isinstance(value.value, str) else []
    return bool(clocks) and all(int(hour[:9]) <= 24 and int(minute[:9]) < 60 for hour, minute in clocks)


def _rate_of(name: str, node: Node, value: Node) -> str:
    """What the value of a share or rate must be, if it is not that; otherwise empty."""
    text = str(value.value).rstrip("% ") if isinstance(value.value, str) or is_number(value) else ""
    try:
        number = float(text)
    except ValueError:
        return "a number"
    is_share = str(value.value).rstrip().endswith("%") or node.text("unit").lower() in ("percent", "%")
    if not math.isfinite(number) or number < 0 or (name != "errorRate" and number == 0):
        return "a number above 0" if name != "errorRate" else "a number from 0 on"
    return "at most 100 percent" if is_share and number > 100 else ""
