"""How older ledgers wrote declarations: version 1 of `core.identity.declarations`, which was Python's `repr`.

This module is frozen. Its texts are compared with those in old ledgers, and never written. A declaration that uses
newer features has no text in version 1, so it differs from every declaration in an old ledger.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from enum import StrEnum
from functools import partial
from typing import Any, assert_never

from tidemill.core.declare import aggregates as agg
from tidemill.core.declare import operators as op
from tidemill.core.declare import sketches
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.graph import Graph
from tidemill.core.identity.declarations import FORMS, encoded
from tidemill.core.time.times import duration, show_duration, signed_duration
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.windows import Calendar, Global, Session, Sliding, Tumbling, WindowSpec

_CLASSES: Mapping[type, str] = {
    op.Topics: "Topics names pattern",
    op.Read: "Read topic contract event_time delay start",
    op.Filter: "Filter predicate",
    op.WithColumns: "WithColumns columns",
    op.Select: "Select columns",
    op.Union: "Union inputs",
    op.Split: "Split routes default overlap",
    op.Discard: "Discard",
    op.KeyBy: "KeyBy columns",
    op.WindowBy: "WindowBy spec allowed_lateness",
    op.AggregateBy: "AggregateBy aggregates",
    op.Publish: "Publish table contract trigger",
    Tumbling: "Tumbling size offset",
    Sliding: "Sliding size slide offset",
    agg.Count: "Count expression",
    agg.CountIf: "CountIf predicate",
    agg.Sum: "Sum expression",
    agg.Min: "Min expression",
    agg.Max: "Max expression",
    agg.Average: "Average expression",
    agg.Variance: "Variance expression",
    agg.StdDev: "StdDev expression",
    agg.Custom: "Custom partial merge finish",
    sketches.First: "First expression",
    sketches.Last: "Last expression",
    sketches.Distinct: "Distinct expression",
    sketches.Collect: "Collect expression",
    sketches.ApproxDistinct: "ApproxDistinct expression precision",
    sketches.Quantiles: "Quantiles expression ranks",
    sketches.HeavyHitters: "HeavyHitters expression k tracked",
}
"""The name of each class in version 1, and the names of its fields; a field renamed since is written `then=now`."""

_ENUMS = {op.StartFrom: "StartFrom", Trigger: "Trigger"}


class _NotThen(Exception):
    """Version 1 has no text for this value."""


def legacy_hash(pipeline: str, graph: Graph, contracts: Iterable[str], future_tolerance: object) -> str | None:
    """The hash that version 1 gave a declaration; None when version 1 has no text for it.

    `contracts` are the fingerprints of its contracts, in order.
    """
    try:
        operators = {name: _text(operator) for name, operator in graph.operators.items()}
    except _NotThen:
        return None
    body = {
        "name": pipeline,
        "operators": operators,
        "edges": sorted(f"{e.source}.{e.source_port} -> {e.target}.{e.target_port}" for e in graph.edges),
        "contracts": list(contracts),
        "future_tolerance": str(future_tolerance),
    }
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def legacy_shape(keys: Iterable[str], window: WindowSpec, aggregates: Mapping[str, Aggregate]) -> Mapping[str, str]:
    """The shape of a table's state in version 1, without parts that version 1 has no text for."""
    shape = {"keys": ", ".join(keys)}
    parts = {"window": partial(_window, window)}
    parts |= {f"aggregate {name}": partial(_text, aggregate) for name, aggregate in aggregates.items()}
    for name, text in parts.items():
        try:
            shape[name] = text()
        except _NotThen:
            continue
    return shape


def _window(window: WindowSpec) -> str:
    if isinstance(window, Calendar | Session | Global):
        raise _NotThen
    offset = signed_duration(window.offset)
    aligned = f" from {show_duration(offset)}" if offset else ""
    size = show_duration(duration(window.size))
    match window:
        case Tumbling():
            return f"tumbling {size}{aligned}"
        case Sliding():
            return f"sliding {size} by {show_duration(duration(window.slide))}{aligned}"
        case _:
            # A kind of window that version 1 did not have: add a case that raises `_NotThen`.
            assert_never(window)


def _text(value: Any) -> str:
    if isinstance(value, StrEnum):
        return f"<{_ENUMS[type(value)]}.{value.name}: {value.value!r}>"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name!r}: {_text(held)}" for name, held in value.items()) + "}"
    if is_dataclass(value):
        return _declared(value)
    return repr(value)


def _declared(value: Any) -> str:
    if type(value) not in _CLASSES:
        raise _NotThen
    name, *fields = _CLASSES[type(value)].split()
    held = {then: now or then for then, _, now in (f.partition("=") for f in fields)}
    form = FORMS[type(value)]
    new = [part.name for attribute, part in form.parts.items() if attribute not in held.values()]
    if any(part in encoded(value) for part in new):
        raise _NotThen
    return f"{name}({', '.join(f'{then}={_text(getattr(value, now))}' for then, now in held.items())})"
