"""Changes of the service levels of a contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from tidemill.contracts.changes.change import Change
from tidemill.contracts.changes.fields import Comparison
from tidemill.contracts.document import Node
from tidemill.contracts.nodes import plain
from tidemill.contracts.service_levels import DURATIONS, duration_of

_NUMBERS = ("availability", "errorRate", "throughput")
_MOMENTS = ("endOfLife", "endOfSupport", "generalAvailability")
_MORE_IS_BETTER = ("retention", "availability", "throughput", "endOfLife", "endOfSupport")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VALUE = ("value", "unit")
_NAMES = ("property", "element")
_ABOUT = ("description", "driver", "id", "customProperties", "authoritativeDefinitions")
"""Keys that say something about a service level, and promise nothing."""


def promise_changes(both: Comparison) -> Iterator[Change]:
    """Changes of service levels. Times are compared as such, whatever their units."""
    old, new = both.before.promises, both.after.promises
    for name in sorted({*old, *new}):
        first, second = old.get(name), new.get(name)
        if second is None:
            yield both.change("promise-removed", message=name)
        elif first is None:
            yield both.change("promise-added", message=name, line=second.line)
        elif (kind := _compared(first, second)) is not None:
            yield both.change(kind, message=name, line=second.line)


def _compared(first: Node, second: Node) -> str | None:
    one, other = _parts(first), _parts(second)
    name = first.text("property").lower()
    known = next((each for each in (*DURATIONS, *_NUMBERS, *_MOMENTS) if each.lower() == name), "")
    before, after = _amount(first, known), _amount(second, known)
    # Numbers of other units cannot be compared; times are translated.
    alike = known not in _NUMBERS or first.text("unit") == second.text("unit")
    comparable = alike and before is not None and after is not None
    values = (before, after) if comparable else (_valued(first), _valued(second))
    if {k: v for k, v in one.items() if k not in _ABOUT} != {k: v for k, v in other.items() if k not in _ABOUT}:
        return "promise-changed"
    if values[0] == values[1]:
        return None if one == other else "description-changed"
    if not alike or before is None or after is None:
        return "promise-changed"
    return "promise-stricter" if (after > before) is (known in _MORE_IS_BETTER) else "promise-weaker"


def _amount(node: Node, known: str) -> Decimal | int | None:
    """The value of a service level as a number with all its digits; None if it cannot be compared."""
    value = node.child("value")
    if known in DURATIONS or value is None:
        return duration_of(node) if known else None
    with suppress(ValueError, InvalidOperation):
        if known in _NUMBERS:
            return Decimal(str(value.value).rstrip("% "))
        if known in _MOMENTS:
            moment = datetime.fromisoformat(str(value.value))
            return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)
    return None


def _parts(node: Node) -> Mapping[str, Any]:
    """What a service level says besides its value and unit."""
    found = plain(node)
    return {k: value for k, value in found.items() if k not in (*_VALUE, *_NAMES)} if isinstance(found, Mapping) else {}


def _valued(node: Node) -> list[Any]:
    return [None if (child := node.child(key)) is None else plain(child) for key in _VALUE]
