"""How `tidemill log append` identifies an input and reports on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from tidemill.cli.views.log import range_json
from tidemill.core.counts import many
from tidemill.core.errors import LogInputError
from tidemill.log import identity
from tidemill.log.loading import can_be_read_twice

if TYPE_CHECKING:
    from tidemill.log.loading import Loaded
    from tidemill.log.producer import Producer


def identify(sources: Sequence[str], given: str | None, *, resume: bool, again: bool) -> str:
    """Return the producer id of an append: the given one, else one made from the files' content, else a new one.

    Raises:
        LogInputError: the options contradict each other, or it is not known which input to resume.
    """
    if again and (resume or given is not None):
        raise LogInputError(
            f"--again appends an input anew, {'--resume' if resume else '--producer-id'} goes on with one",
            fix="give one of them",
        )
    if given is not None:
        return given
    if can_be_read_twice(sources) and not again:
        return identity.id_of_files(sources)
    if resume:
        raise LogInputError(
            "standard input has no name by which an append could be resumed",
            fix="give the --producer-id that the stopped append printed, and the same input",
        )
    return identity.new_id()


def check_resumed(producer: Producer, topic: str) -> None:
    """Refuse to resume an append that wrote nothing.

    Raises:
        LogInputError: the topic has nothing of this input.
    """
    if not producer.next_sequence():
        raise LogInputError(
            f"topic {topic} has nothing of this input: none of it landed, or it is another one than that of the append "
            "that ended, or it changed since; nothing was appended",
            fix="give the input as it was; or append all of this one, without --resume",
        )


def go_on(producer_id: str) -> str:
    """Say what to type to complete an append that ended halfway."""
    if producer_id.startswith(identity.OF_FILES):
        return "type the same command with --resume, the files unchanged: only what is missing is appended"
    again = f"--resume --producer-id {producer_id}"
    return f"type the command with {again} and the same input: only what is missing is appended"


def appended_json(topic: str, producer_id: str, loaded: Loaded) -> dict[str, object]:
    """The result of an append as JSON values."""
    return {
        "topic": topic,
        "records": loaded.records,
        "appended": loaded.appended,
        "bytes": loaded.bytes,
        "ranges": [range_json(item) for item in loaded.ranges],
        "producer_id": producer_id,
    }


def show_appended(loaded: Loaded) -> None:
    """Print the result of an append for people."""
    where = ", ".join(str(item) for item in loaded.ranges) or "nothing"
    if not loaded.there:
        typer.echo(f"{many(loaded.records, 'record')}: {where}")
    elif loaded.appended:
        typer.echo(
            f"{many(loaded.appended, 'record')} appended, {loaded.there:,} of this input were there before: {where}"
        )
    else:
        typer.echo(f"nothing appended: all {loaded.there:,} records of this input were there before: {where}")
        typer.echo("(--again appends them once more)", err=True)
