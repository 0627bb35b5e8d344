"""What `tidemill log` prints, for people and for programs."""

# Slow imports are inside the functions that need them.

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from tidemill.cli.output import grid
from tidemill.core.errors import TooManyPartitions
from tidemill.core.exit_code import ExitCode

if TYPE_CHECKING:
    from rich.table import Table

    from tidemill.core.log.offsets import OffsetRange
    from tidemill.core.log.scan import Record
    from tidemill.log.interface import Log, Topic, Usage


_NUMBERS = ("start", "end", "records", "segments", "bytes")


@contextmanager
def progress_bar(what: str, total: int | None, go_on: str) -> Iterator[Callable[[int], None]]:
    """Show a progress bar in bytes on standard error, if it is a terminal. An interrupt has its own exit code."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        try:
            yield lambda consumed: bar.update(task, completed=consumed)
        except KeyboardInterrupt as error:
            bar.stop()
            typer.echo(f"interrupted: what was appended stays; {go_on}", err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from error


def print_json(value: object) -> None:
    """Print one value as one line of JSON on standard output."""
    typer.echo(json.dumps(value, ensure_ascii=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A topic, and what its partitions hold and take in the store. Partitions without files are left out.

    `too_many` says that the topic has more partitions than a batch can ask.
    """

    topic: Topic
    bounds: Mapping[int, OffsetRange]
    usage: Mapping[int, Usage]
    too_many: bool = False


def describe(log: Log, topic: Topic, *, only: bool) -> Described:
    """Collect what `tidemill log ls` shows of a topic.

    Raises:
        TooManyPartitions: the topic cannot be read and is the `only` one asked for. A list shows it with a note.
    """
    try:
        bounds, usage = log.bounds(topic.name), log.usage(topic.name)
    except TooManyPartitions:
        if only:
            raise
        return Described(topic=topic, bounds={}, usage={}, too_many=True)
    return Described(topic=topic, bounds=bounds, usage=usage)


def identity_json(topic: Topic) -> dict[str, object]:
    """The identity of a topic as JSON values. `created` is null if the log does not know it."""
    created = None if topic.created is None else topic.created.isoformat()
    identity = {"topic": topic.name, "topic_id": topic.topic_id, "partitions": topic.partitions}
    return identity | {"layout": topic.layout, "created": created}


def range_json(item: OffsetRange) -> dict[str, object]:
    """Offsets of one partition, without the last one."""
    return {
        "partition": item.topic_partition.partition,
        "from_offset": item.from_offset,
        "until_offset": item.until_offset,
    }


def record_json(record: Record) -> dict[str, object]:
    """A whole record; bytes that are not UTF-8 are in a field `..._base64` instead."""
    shown: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp.isoformat(),
    }
    shown |= _text("key", record.key) | _text("value", record.value)
    return shown | {"headers": [{"key": name, **_text("value", data)} for name, data in record.headers]}


def _text(name: str, data: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data or b"").decode()}


def topic_json(described: Described) -> dict[str, object]:
    """A topic, its totals and each partition as JSON values; null if it has too many partitions to ask."""
    bounds, usage = described.bounds, described.usage
    parts = [
        range_json(held) | {"records": len(held), "segments": usage[n].segments, "bytes": usage[n].bytes}
        for n, held in bounds.items()
    ]
    identity = identity_json(described.topic)
    if described.too_many:
        return identity | {"records": None, "segments": None, "bytes": None, "bounds": None}
    return identity | {
        "records": sum(len(held) for held in bounds.values()),
        "segments": _sum(used.segments for used in usage.values()),
        "bytes": _sum(used.bytes for used in usage.values()),
        "bounds": parts,
    }


def topics_table(described: Sequence[Described]) -> Table:
    """One row for each topic. `start` is the lowest of its partitions, `end` the highest."""
    table = grid("topic", "id", "partitions", *_NUMBERS, "made", numbers=("partitions", *_NUMBERS))
    for each in described:
        held, used = each.bounds.values(), each.usage.values()
        numbers = ["too many to be read", *["-"] * (len(_NUMBERS) - 1)]
        if not each.too_many:
            numbers = [
                _count(min((part.from_offset for part in held), default=None)),
                _count(max((part.until_offset for part in held), default=None)),
                f"{sum(map(len, held)):,}",
                _count(_sum(part.segments for part in used)),
                _size(_sum(part.bytes for part in used)),
            ]
        table.add_row(each.topic.name, each.topic.topic_id, f"{each.topic.partitions:,}", *numbers, _made(each.topic))
    return table


def partitions_table(described: Described) -> Table:
    """One row for each partition of a topic."""
    table = grid("partition", *_NUMBERS, numbers=("partition", *_NUMBERS))
    topic = described.topic
    table.title = f"{topic.name} ({topic.topic_id}), {_made(topic)}"
    table.title_justify = "left"
    if not described.bounds:
        table.caption = "no partition has files yet"
        table.caption_justify = "left"
    for number, held in described.bounds.items():
        used = described.usage[number]
        table.add_row(
            str(number),
            f"{held.from_offset:,}",
            f"{held.until_offset:,}",
            f"{len(held):,}",
            _count(used.segments),
            _size(used.bytes),
        )
    return table


def _made(topic: Topic) -> str:
    """What created a topic, and when, as far as that is known."""
    by = {"kafka": "in Kafka", "kafka-connect": "by Kafka Connect", "tidemill": "by Tidemill"}
    when = "" if topic.created is None else f", {topic.created:%Y-%m-%d %H:%M}"
    return f"{by.get(topic.layout, topic.layout)}{when}"


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum; None if one count is not known."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _size(count: int | None) -> str:
    from rich.filesize import decimal

    return "-" if count is None else decimal(count)
