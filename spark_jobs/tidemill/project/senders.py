"""Whether the pipelines that `watermark_of` names can tell a watermark to those that name them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tidemill.core.declare.operators import Publish, Read
from tidemill.core.declare.pipeline import Pipeline
from tidemill.core.errors import DeclarationError

Declared = Mapping[str, tuple[Path, Pipeline]]
"""Pipelines by name, each with its file."""


def without_sender(declared: Declared) -> dict[str, DeclarationError]:
    """Refuse pipelines that would wait for their own watermark, and those whose sender sends nothing that they read.

    A sender that is not declared here is not looked at: it may be in another project on the same lake.
    """
    found: dict[str, DeclarationError] = {}
    for name, (path, pipeline) in declared.items():
        for where, read in _told(pipeline):
            place = f"{path}: `{name}`: {where}"
            error = _circle(place, name, declared) or _nothing_sent(place, read, declared)
            if error is not None:
                found.setdefault(name, error)
    return found


def _told(pipeline: Pipeline) -> Iterator[tuple[str, Read]]:
    """The reads of a pipeline whose watermark another one tells, and the place of each."""
    graph = pipeline.spec.graph
    for name, operator in graph.operators.items():
        if isinstance(operator, Read) and operator.watermark_of is not None:
            yield graph.where(name), operator


def _circle(place: str, name: str, declared: Declared) -> DeclarationError | None:
    way = _way_back(name, declared)
    if way is None:
        return None
    shown = " -> ".join(f"`{each}`" for each in way)
    return DeclarationError(
        f"{place} has its watermark of itself: {shown}; it would wait for itself for ever",
        fix="watermark_of names the pipeline that sends the records; one of them needs a delay or a watermark",
    )


def _way_back(name: str, declared: Declared) -> tuple[str, ...] | None:
    """The pipelines from `name` to itself, each of which has its watermark of the next one; None if there is no way."""
    ways: list[tuple[str, ...]] = [(name,)]
    seen = set[str]()
    while ways:
        way = ways.pop()
        if way[-1] not in declared:
            continue
        for _, read in _told(declared[way[-1]][1]):
            if read.watermark_of == name:
                return (*way, name)
            if read.watermark_of is not None and read.watermark_of not in seen:
                seen.add(read.watermark_of)
                ways.append((*way, read.watermark_of))
    return None


def _nothing_sent(place: str, read: Read, declared: Declared) -> DeclarationError | None:
    if read.watermark_of is None or read.watermark_of not in declared:
        return None
    operators = declared[read.watermark_of][1].spec.graph.operators.values()
    sent = [o.topic for o in operators if isinstance(o, Publish) and o.topic is not None]
    if any(topic in read.names or re.fullmatch(read.pattern or "(?!)", topic) for topic in sent):
        return None
    return DeclarationError(
        f"{place} has watermark_of={read.watermark_of!r}, which sends nothing to {read.topic}; it sends to "
        f"{', '.join(sent) or 'no topic'}",
        fix=f"name the pipeline that sends the records, or publish there with topic={read.names[0]!r}"
        if read.names
        else "name the pipeline that sends the records, or publish there to a topic that the pattern matches",
    )
