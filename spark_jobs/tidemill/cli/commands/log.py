"""`tidemill log`: create topics, append to them, look at them, and trim old records."""

# A command's parameters are its options, so there may be many. Slow imports are inside the functions that need them.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.commands.log_format import InputKind, format_of
from tidemill.cli.output import MOST, AsJson, console, open_project
from tidemill.cli.views.log import (
    describe,
    identity_json,
    partitions_table,
    print_json,
    progress_bar,
    range_json,
    record_json,
    topic_json,
    topics_table,
)
from tidemill.core.counts import many
from tidemill.core.errors import ConfigError, LogInputError
from tidemill.log.append_formats.fields import TimeUnit

if TYPE_CHECKING:
    from tidemill.log.interface import Log, Topic
    from tidemill.log.writable import WritableLog

app = typer.Typer(no_args_is_help=True, help="Topics of records: make, fill, look at and trim them.")


class Partitioning(StrEnum):
    """How records are distributed to partitions."""

    KEY = "key"
    ROUND_ROBIN = "round-robin"


LogPlace = Annotated[
    str | None,
    typer.Option(
        "--log", envvar="TIDEMILL_LOG", metavar="FOLDER", help="A folder of topics. Default: the project's log."
    ),
]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
Partition = Annotated[int | None, typer.Option("--partition", min=0, max=MOST, help="Only this partition.")]


def open_log(ctx: typer.Context) -> WritableLog:
    """Open the log of the command, to write to it: that of `--log`, or else the project's.

    Raises:
        ConfigError: neither is there, or the log is somebody else's.
    """
    from tidemill.log.writable import WritableLog

    log = find_log(ctx)
    if not isinstance(log, WritableLog):
        raise ConfigError("the project's log is a landing zone of others, which cannot be written to")
    return log


def find_log(ctx: typer.Context) -> Log:
    """The log of `--log`, or of the project that the command runs in.

    Raises:
        ConfigError: neither is there.
    """
    from tidemill.log.file import FileLog

    if place := ctx.params.get("log"):
        if "://" in place:
            raise ConfigError(
                f"--log is a folder of this machine, found {place}", fix="go to a project whose [log] path is that one"
            )
        return FileLog(place)
    try:
        return open_project(ctx).log()
    except ConfigError as error:
        ways = [way for way in (error.fix, "give the log's folder with --log PATH") if way]
        raise ConfigError(error.message, fix="; or ".join(ways)) from error


@app.command()
def create(
    ctx: typer.Context,
    topic: TopicName,
    partitions: Annotated[int, typer.Option("--partitions", "-p", help="How many; this is final.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Allow so many that batches become slow.")] = False,
    if_not_exists: Annotated[bool, typer.Option(help="Leave such a topic alone.")] = False,
    log: LogPlace = None,
    as_json: AsJson = False,
) -> None:
    """Make an empty topic."""
    place = open_log(ctx)
    existing = {found.name: found for found in place.topics()} if if_not_exists else {}
    made = existing.get(topic)
    if made is None or made.partitions != partitions:
        made = place.create_topic(topic, partitions, force=force)
    if as_json:
        print_json(identity_json(made))
    else:
        typer.echo(f"topic {made.name} with {many(made.partitions, 'partition')}, id {made.topic_id}")


@app.command()
def append(
    ctx: typer.Context,
    topic: TopicName,
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="The files to append. Default: -, standard input.")
    ] = None,
    input_format: Annotated[
        InputKind | None,
        typer.Option("--format", "-f", help="The format of all files. Default: what their names say, or lines."),
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="FIELD", help="The field to use as the key.")] = None,
    key_regex: Annotated[
        str | None, typer.Option(metavar="REGEX", help="For lines: the key is what this finds, or its first group.")
    ] = None,
    timestamp_field: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="A field, ISO 8601 or a number. Default: the time of the append."),
    ] = None,
    timestamp_unit: Annotated[
        TimeUnit, typer.Option(help="The unit of numbers in it, since 1970.")
    ] = TimeUnit.MILLISECONDS,
    raw: Annotated[bool, typer.Option("--raw", help="For csv: keep the row as text instead of JSON.")] = False,
    delimiter: Annotated[str, typer.Option(help="For csv: what separates fields.")] = ",",
    partitioning: Annotated[
        Partitioning, typer.Option(help="Records without a key go to all in turn.")
    ] = Partitioning.KEY,
    segment_records: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="The most records to write at once.")
    ] = 200_000,
    producer_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Names this input, where it is not a file with its own content."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an append that stopped halfway; refused if there is none.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Append these files again, although the topic has their records.")
    ] = False,
    log: LogPlace = None,
    as_json: AsJson = False,
) -> None:
    """Append records from files or standard input.

    Tidemill knows the files of one command by their content: if you append the same files again, only missing records
    are appended. The same files together with others are another input, and all of them are appended.
    """
    from tidemill.cli.commands.log_append import appended_json, check_resumed, go_on, identify, show_appended
    from tidemill.log import loading
    from tidemill.log.append_formats.chunks import ChunkSize
    from tidemill.log.producer import ByKey, Producer, RoundRobin

    inputs = sources or [loading.STANDARD_INPUT]
    chosen = format_of(ctx.params, inputs)
    total, size = loading.total_bytes(inputs), ChunkSize(records=segment_records)
    how = ByKey() if partitioning is Partitioning.KEY else RoundRobin()
    place = open_log(ctx)
    place.topic(topic)
    if loading.can_be_read_twice(inputs):
        loading.check(inputs, chosen, size)
    name = identify(inputs, producer_id, resume=resume, again=again)
    producer = Producer(place, topic, partitioning=how, producer_id=name)
    if resume:
        check_resumed(producer, topic)
    with progress_bar(f"appending to {topic}", total, go_on(name)) as progress:
        loaded = loading.load(producer, inputs, chosen, size, go_on=go_on(name), progress=progress)
    if as_json:
        print_json(appended_json(topic, name, loaded))
    else:
        show_appended(loaded)


@app.command("ls")
def list_topics(
    ctx: typer.Context,
    topic: Annotated[str | None, typer.Argument(metavar="TOPIC", help="Show the partitions of this topic.")] = None,
    log: LogPlace = None,
    as_json: AsJson = False,
) -> None:
    """Show the topics, or the partitions of one."""
    place = find_log(ctx)
    topics = [place.topic(topic)] if topic else place.topics()
    described = [describe(place, found, only=topic is not None) for found in topics]
    if as_json:
        for each in described:
            print_json(topic_json(each))
    else:
        console().print(partitions_table(described[0]) if topic else topics_table(described))


@app.command()
def cat(
    ctx: typer.Context,
    topic: TopicName,
    from_offset: Annotated[
        int | None, typer.Option("--from", min=0, max=MOST, metavar="OFFSET", help="The first offset to print.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, max=MOST, help="The most records to print.")] = None,
    partition: Partition = None,
    log: LogPlace = None,
    as_json: AsJson = False,
) -> None:
    """Print values, one a line as they are, or whole records as JSON lines."""
    from tidemill.log.reading import read_topic

    place = find_log(ctx)
    if from_offset is not None:
        partition = _only_partition(place.topic(topic), partition)
    records = read_topic(place, topic, partition=partition, from_offset=from_offset, limit=limit)
    if as_json:
        for record in records:
            print_json(record_json(record))
        return
    for record in records:
        sys.stdout.buffer.write((record.value or b"") + b"\n")
    sys.stdout.buffer.flush()


@app.command()
def trim(
    ctx: typer.Context,
    topic: TopicName,
    before: Annotated[int, typer.Option(min=0, max=MOST, metavar="OFFSET", help="Delete records before it.")],
    partition: Partition = None,
    log: LogPlace = None,
    as_json: AsJson = False,
) -> None:
    """Delete the oldest records of a partition, for good.

    A pipeline that has not read them yet stops, or skips them if it declares `on_loss="skip"`. Backfills, rewinds,
    rebuilds and `tidemill verify` can no longer read them.
    """
    place = open_log(ctx)
    held = place.trim(topic, _only_partition(place.topic(topic), partition), before)
    if as_json:
        print_json(range_json(held))
    else:
        typer.echo(f"{held.topic_partition} now holds offsets [{held.from_offset}, {held.until_offset})")


def _only_partition(topic: Topic, partition: int | None) -> int:
    if partition is None and topic.partitions > 1:
        raise LogInputError(
            f"an offset belongs to a partition, and topic {topic.name} has {topic.partitions}",
            fix="give --partition",
        )
    return partition or 0
