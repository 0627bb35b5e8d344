"""Declarations as JSON values: the one definition of when two declarations are the same.

Every kind of operator, window and aggregate has a *form*: a tag, and for each field its written name and its default.
Tags and written names stay when Python names change. A field that has its default is left out, so a new field does not
change what is already stored. SQL is marked as `{"sql": ...}`. Durations are whole microseconds under names that end
in `_us`.

The forms are part of every ledger. Never change a tag, a name or a default; a new kind or field adds a line.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

from tidemill.core.declare import aggregates as agg
from tidemill.core.declare import bitmaps, sketches
from tidemill.core.declare import operators as op
from tidemill.core.declare.firing import Firing
from tidemill.core.errors import DeclarationError
from tidemill.core.identity.forms import ALWAYS, Form, Part
from tidemill.core.identity.ordered_forms import ORDERED_FORMS
from tidemill.core.time.times import micros
from tidemill.core.time.windows import Calendar, Global, Session, Sliding, Tumbling

VERSION = 2
"""The version of this encoding. Version 1 was Python's `repr` (`tidemill.core.identity.legacy`)."""

_NO_TIME = timedelta(0)
_OF = {"expression": Part("of", sql=True)}

FORMS: Mapping[type, Form] = {
    op.Topics: Form("topics", {"names": Part("names", ()), "pattern": Part("pattern", None)}),
    op.Read: Form(
        "read",
        {
            "topic": Part("topic"),
            "contract": Part("contract"),
            "event_time": Part("event_time", None),
            "delay": Part("delay_us", _NO_TIME),
            "start": Part("start", "earliest"),
            "watermark": Part("watermark", None, sql=True),
            "watermark_of": Part("watermark_of", None),
        },
    ),
    op.Behind: Form("behind", {"by": Part("by_us")}),
    op.Filter: Form("filter", {"predicate": Part("keep", sql=True)}),
    op.WithColumns: Form("with_columns", {"columns": Part("columns", sql=True)}),
    op.Select: Form("select", {"columns": Part("columns")}),
    op.Union: Form("union", {"inputs": Part("inputs")}),
    op.Split: Form(
        "split",
        {"routes": Part("routes", sql=True), "default": Part("default"), "overlap": Part("overlap", default=False)},
    ),
    op.Discard: Form("discard"),
    op.KeyBy: Form("key_by", {"columns": Part("columns")}),
    op.WindowBy: Form(
        "window",
        {
            "spec": Part("windows"),
            "allowed_lateness": Part("allowed_lateness_us", _NO_TIME),
            "start": Part("start", "window_start"),
            "end": Part("end", "window_end"),
            "evictor": Part("evictor", None),
        },
    ),
    op.AggregateBy: Form("aggregate", {"aggregates": Part("columns")}),
    op.Publish: Form(
        "publish",
        {
            "table": Part("table"),
            "contract": Part("contract"),
            "trigger": Part("trigger", None),
            "timing": Part("timing", None),
            "firing": Part("firing", None),
        },
        ignored=frozenset({"topic"}),
    ),
    Firing: Form(
        "firing",
        {
            "accumulation": Part("accumulation", None),
            "accept_loss": Part("accept_loss", default=False),
            "empty_on_time": Part("empty_on_time", default=True),
            "index": Part("index", None),
            "last": Part("last", None),
            "operation": Part("operation", None),
        },
    ),
    Tumbling: Form("tumbling", {"size": Part("size_us"), "offset": Part("offset_us", _NO_TIME)}),
    Sliding: Form(
        "sliding", {"size": Part("size_us"), "slide": Part("slide_us"), "offset": Part("offset_us", _NO_TIME)}
    ),
    Calendar: Form("calendar", {"unit": Part("unit"), "zone": Part("zone", "UTC")}),
    Session: Form("session", {"gap": Part("gap_us")}),
    Global: Form("global"),
    **ORDERED_FORMS,
    agg.Count: Form("count", {"expression": Part("of", "*", sql=True)}),
    agg.CountIf: Form("count_if", {"predicate": Part("of", sql=True)}),
    agg.Sum: Form("sum", {**_OF, "overflow": Part("overflow", "saturate")}),
    agg.Min: Form("min", _OF),
    agg.Max: Form("max", _OF),
    agg.Average: Form("average", _OF),
    agg.Variance: Form("variance", _OF),
    agg.StdDev: Form("stddev", _OF),
    # Merge and finish hold {names} of state columns, so they are not SQL yet.
    agg.Custom: Form(
        "custom", {"partial": Part("partial", sql=True), "merge": Part("merge"), "finish": Part("finish")}
    ),
    sketches.First: Form("first", _OF),
    sketches.Last: Form("last", _OF),
    sketches.Distinct: Form("distinct", _OF),
    sketches.Collect: Form("collect", _OF),
    sketches.ApproxDistinct: Form("approx_distinct", {**_OF, "precision": Part("precision", 12)}),
    bitmaps.Bitmap: Form("bitmap", {**_OF, "size": Part("size")}),
    bitmaps.BloomFilter: Form("bloom_filter", {**_OF, "items": Part("items"), "fpp": Part("fpp")}),
    sketches.Quantiles: Form("quantiles", {**_OF, "ranks": Part("ranks", (0.5, 0.95, 0.99))}),
    sketches.HeavyHitters: Form("heavy_hitters", {**_OF, "k": Part("k", 10), "tracked": Part("tracked", 1000)}),
}


def check_forms(forms: Mapping[type, Form]) -> None:
    """Check that every field of every kind is written, or left out on purpose.

    Raises:
        TypeError: a form lacks a field of its class, or has a field that the class no longer has.
    """
    for kind, form in forms.items():
        there = {f.name for f in dataclasses.fields(kind)}
        written = form.parts.keys() | form.ignored
        if there != written:
            raise TypeError(
                f"the written form of {kind.__name__} has the fields {sorted(written)}, the class {sorted(there)}: "
                "add new ones to `FORMS` with their default, and keep the names that are written"
            )


check_forms(FORMS)


def encoded(value: Any, forms: Mapping[type, Form] = FORMS) -> dict[str, Any]:
    """An operator, window or aggregate as JSON values.

    Raises:
        DeclarationError: the kind has no form.
    """
    form = forms.get(type(value))
    if form is None:
        raise DeclarationError(
            f"{type(value).__name__} has no written form: state and plans could not say what it is",
            fix="declare an aggregate of your own as Custom(partial=..., merge=..., finish=...)",
        )
    found: dict[str, Any] = {"kind": form.tag}
    for attribute, part in form.parts.items():
        held = getattr(value, attribute)
        if part.default is ALWAYS or held != part.default:
            found[part.name] = _plain(held, forms, sql=part.sql)
    return found


def _plain(value: Any, forms: Mapping[type, Form], *, sql: bool) -> Any:
    match value:
        case StrEnum():
            return value.value
        case str():
            return {"sql": value} if sql else value
        case timedelta():
            return micros(value)
        case Mapping():
            return [[name, _plain(held, forms, sql=sql)] for name, held in value.items()]
        case tuple() | list():
            return [_plain(held, forms, sql=sql) for held in value]
        case None | bool() | int() | float():
            return value
        case _:
            return encoded(value, forms)


def written(value: Any) -> str:
    """JSON values as one text; the same values always give the same text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """A SHA-256 of JSON values, in hexadecimal."""
    return hashlib.sha256(written(value).encode()).hexdigest()
