"""What `tidemill log` prints, for people and for programs."""

# What is slow to import is imported by who needs it.

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from tidemill.cli.exit_codes import ExitCode
from tidemill.cli.output import grid

if TYPE_CHECKING:
    from rich.table import Table

    from tidemill.core.offsets import OffsetRange
    from tidemill.core.scan import Record
    from tidemill.log.protocol import Topic, Usage

    Described = tuple[Topic, Mapping[int, OffsetRange], Mapping[int, Usage]]


_NUMBERS = ("start", "end", "records", "segments", "bytes")


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar of bytes on standard error while somebody is looking; an interrupt ends the command with its own code."""
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
            typer.echo("interrupted: what was appended stays; repeated with --producer-id, only the rest is", err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from error


def print_json(value: object) -> None:
    """One value on one line of standard output."""
    typer.echo(json.dumps(value, ensure_ascii=False))


def identity_json(topic: Topic) -> dict[str, object]:
    """What a topic is."""
    return {"topic": topic.name, "topic_id": topic.topic_id, "partitions": topic.partitions}


def range_json(item: OffsetRange) -> dict[str, object]:
    """Offsets of one partition, the last one not included."""
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


def topic_json(topic: Topic, bounds: Mapping[int, OffsetRange], usage: Mapping[int, Usage]) -> dict[str, object]:
    """A topic, what it holds in all, and each partition."""
    parts = [
        range_json(held) | {"records": len(held), "segments": usage[n].segments, "bytes": usage[n].bytes}
        for n, held in bounds.items()
    ]
    return identity_json(topic) | {
        "records": sum(len(held) for held in bounds.values()),
        "segments": _sum(used.segments for used in usage.values()),
        "bytes": _sum(used.bytes for used in usage.values()),
        "bounds": parts,
    }


def topics_table(described: Sequence[Described]) -> Table:
    """A row for each topic; of several partitions the lowest start and the highest end."""
    table = grid("topic", "id", "partitions", *_NUMBERS, numbers=("partitions", *_NUMBERS))
    for topic, bounds, usage in described:
        table.add_row(
            topic.name,
            topic.topic_id,
            str(topic.partitions),
            f"{min(held.from_offset for held in bounds.values()):,}",
            f"{max(held.until_offset for held in bounds.values()):,}",
            f"{sum(len(held) for held in bounds.values()):,}",
            _count(_sum(used.segments for used in usage.values())),
            _size(_sum(used.bytes for used in usage.values())),
        )
    return table


def partitions_table(described: Described) -> Table:
    """A row for each partition of one topic."""
    topic, bounds, usage = described
    table = grid("partition", *_NUMBERS, numbers=("partition", *_NUMBERS))
    table.title = f"{topic.name} ({topic.topic_id})"
    table.title_justify = "left"
    for number, held in bounds.items():
        used = usage[number]
        table.add_row(
            str(number),
            f"{held.from_offset:,}",
            f"{held.until_offset:,}",
            f"{len(held):,}",
            _count(used.segments),
            _size(used.bytes),
        )
    return table


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum, or None when one is not known."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _size(count: int | None) -> str:
    from rich.filesize import decimal

    return "-" if count is None else decimal(count)
