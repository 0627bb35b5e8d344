"""`tidemill log`: create topics, append to them, look at them, and trim old records."""

# A command's parameters are its options, so there may be many. Slow imports are inside the functions that need them.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

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
from tidemill.core.errors import ConfigError, LogInputError
from tidemill.log.inputs.fields import TimeUnit

if TYPE_CHECKING:
    from tidemill.log.loading import InputFormat
    from tidemill.log.protocol import Log, Topic
    from tidemill.log.writable import WritableLog

app = typer.Typer(no_args_is_help=True, help="Topics of records: make, fill, look at and trim them.")


class Format(StrEnum):
    """The format of an input: how it is split into records."""

    LINES = "lines"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


class Partitioning(StrEnum):
    """How records are distributed to partitions."""

    KEY = "key"
    ROUND_ROBIN = "round-robin"


LogPlace = Annotated[
    str | None,
    typer.Option("--log", envvar="TIDEMILL_LOG", metavar="PATH", help="The log's folder; else the project's."),
]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
Partition = Annotated[int | None, typer.Option("--partition", min=0, max=MOST, help="Only this partition.")]


def open_log(ctx: typer.Context) -> WritableLog:
    """The same, to write to it.

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
    partitions: Annotated[int, typer.Option("--partitions", "-p", help="How many; for good.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Allow so many partitions that batches become slow.")] = False,
    if_not_exists: Annotated[bool, typer.Option(help="Leave a topic of this name and size alone.")] = False,
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
        typer.echo(f"topic {made.name} with {made.partitions} partitions, id {made.topic_id}")


@app.command()
def append(
    ctx: typer.Context,
    topic: TopicName,
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Inputs; - is standard input, the default.")
    ] = None,
    input_format: Annotated[Format, typer.Option("--format", "-f", help="Of all inputs.")] = Format.LINES,
    key: Annotated[str | None, typer.Option(metavar="FIELD", help="The field that is the key.")] = None,
    key_regex: Annotated[
        str | None, typer.Option(metavar="REGEX", help="For lines: what it finds, or its first group, is the key.")
    ] = None,
    timestamp_field: Annotated[
        str | None, typer.Option(metavar="FIELD", help="ISO 8601 or a number; else the time of the append.")
    ] = None,
    timestamp_unit: Annotated[TimeUnit, typer.Option(help="Of numbers in it, since 1970.")] = TimeUnit.MILLISECONDS,
    raw: Annotated[bool, typer.Option("--raw", help="For csv: the row as it stands, not as JSON.")] = False,
    delimiter: Annotated[str, typer.Option(help="For csv.")] = ",",
    partitioning: Annotated[
        Partitioning, typer.Option(help="Records without a key are dealt in turn.")
    ] = Partitioning.KEY,
    segment_records: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Records written at a time, at most.")
    ] = 200_000,
    producer_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Names this input, instead of its content: for inputs that are no files."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an append that ended on the way; refused where there is none.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Append once more what the topic has from these files.")
    ] = False,
    log: LogPlace = None,
    as_json: AsJson = False,
) -> None:
    """Append records from files or standard input.

    The files of one command are one input, known by their content: of an input that was appended before, only what is
    missing is appended. The same files together with others are another input, and all of them are appended.
    """
    from tidemill.cli.commands.log_append import appended_json, check_resumed, go_on, identify, show_appended
    from tidemill.log import loading
    from tidemill.log.inputs.chunks import ChunkSize
    from tidemill.log.producer import ByKey, Producer, RoundRobin

    inputs, chosen = sources or [loading.STANDARD_INPUT], _input_format(ctx)
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
    topic: Annotated[str | None, typer.Argument(metavar="TOPIC", help="Show its partitions.")] = None,
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
        int | None, typer.Option("--from", min=0, max=MOST, metavar="OFFSET", help="Begin there; else at the start.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, max=MOST, help="At most so many records.")] = None,
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
    before: Annotated[int, typer.Option(min=0, max=MOST, metavar="OFFSET", help="Records below it are given up.")],
    partition: Partition = None,
    log: LogPlace = None,
    as_json: AsJson = False,
) -> None:
    """Give up the oldest records of a partition, for good."""
    place = open_log(ctx)
    held = place.trim(topic, _only_partition(place.topic(topic), partition), before)
    if as_json:
        print_json(range_json(held))
    else:
        typer.echo(f"{held.topic_partition} now holds offsets [{held.from_offset}, {held.until_offset})")


def _input_format(ctx: typer.Context) -> InputFormat:
    from tidemill.log.inputs.fields import FieldChoice
    from tidemill.log.inputs.lines import JsonLines, Lines
    from tidemill.log.inputs.tables import Csv, ParquetRows

    given = ctx.params
    chosen = Format(given["input_format"])
    _refuse_foreign_options(given, chosen)
    unit = TimeUnit(given["timestamp_unit"])
    fields = FieldChoice(key=given["key"], time=given["timestamp_field"], unit=unit)
    match chosen:
        case Format.LINES:
            return Lines(key_regex=given["key_regex"])
        case Format.JSONL:
            return JsonLines(fields=fields)
        case Format.CSV:
            return Csv(fields=fields, delimiter=given["delimiter"], raw=given["raw"])
        case Format.PARQUET:
            return ParquetRows(fields=fields)


def _refuse_foreign_options(given: dict[str, object], chosen: Format) -> None:
    """Refuse an option that would have no effect with this format."""
    fields = {Format.JSONL, Format.CSV, Format.PARQUET}
    meant_for = {"key": fields, "timestamp_field": fields, "key_regex": {Format.LINES}, "raw": {Format.CSV}}
    for name, formats in meant_for.items():
        if given[name] and chosen not in formats:
            raise LogInputError(
                f"--{name.replace('_', '-')} means nothing for --format {chosen.value}",
                fix=f"use it with --format {' or '.join(sorted(formats))}",
            )
    if len(str(given["delimiter"])) != 1:
        raise LogInputError(f"--delimiter {given['delimiter']!r} is not one character")


def _only_partition(topic: Topic, partition: int | None) -> int:
    if partition is None and topic.partitions > 1:
        raise LogInputError(
            f"an offset belongs to a partition, and topic {topic.name} has {topic.partitions}",
            fix="give --partition",
        )
    return partition or 0
