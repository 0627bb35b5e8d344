"""`tidemill log delete`: remove a topic, unless a pipeline has read it."""

# A command's parameters are its options, so there may be many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.commands.log import LogPlace, TopicName, open_log
from tidemill.cli.output import AsJson, open_project
from tidemill.cli.views.log import identity_json, print_json
from tidemill.core.errors import ConfigError, LogInputError

if TYPE_CHECKING:
    from tidemill.log.interface import Topic
    from tidemill.project.project import Project


def delete(
    ctx: typer.Context,
    topic: TopicName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for the topic's name as confirmation.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Delete it even if a pipeline of the project has read it.")
    ] = False,
    log: LogPlace = None,
    as_json: AsJson = False,
) -> None:
    """Remove a topic and all its records, for good."""
    place = open_log(ctx)
    found = place.topic(topic)
    if not force and (readers := _readers(ctx, found)):
        raise LogInputError(
            f"topic {topic} was read by {', '.join(readers)}: without it none of them can go on, back, or be verified",
            fix="rebuild them from another topic first; or give --force",
        )
    if not yes:
        _ask_again(found)
    place.delete_topic(topic)
    if as_json:
        print_json(identity_json(found) | {"deleted": True})
    else:
        typer.echo(f"topic {topic} (id {found.topic_id}) is deleted")


def _ask_again(topic: Topic) -> None:
    """Ask for the topic's name once more before deleting it.

    Raises:
        LogInputError: there is no input, or another name was typed.
    """
    try:
        typed = typer.prompt(f"this removes all records of {topic.name}; type its name to go on", err=True)
    except typer.Abort:
        typed = None
    if typed != topic.name:
        what = "no name was typed" if typed is None else f"{typed!r} is not {topic.name!r}"
        raise LogInputError(f"{what}: nothing was deleted", fix="type the topic's name, or give --yes")


def _readers(ctx: typer.Context, topic: Topic) -> list[str]:
    """The pipelines of the project whose ledger says that they have read, or are reading, this very topic.

    Also such as are not declared any more. With `--log` the project may be another one, or none: then nobody is known.
    """
    project: Project | None = None
    with suppress(ConfigError):
        project = open_project(ctx)
    if project is None:
        return []
    return [name for name in project.generations.pipelines() if _has_read(project, name, topic)]


def _has_read(project: Project, name: str, topic: Topic) -> bool:
    view = project.ledger(name).view()
    read = view.position.topics.get(topic.name)
    planned = view.open_batch.plan.topics.get(topic.name) if view.open_batch is not None else None
    return any(known is not None and known.topic_id == topic.topic_id for known in (read, planned))
