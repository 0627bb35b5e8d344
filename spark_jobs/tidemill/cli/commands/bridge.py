"""`tidemill log bridge`: copy a stream of another system into a topic."""

from __future__ import annotations

from typing import Annotated

import typer

from tidemill.cli.commands.log import TopicName
from tidemill.cli.output import MOST, AsJson, open_project
from tidemill.cli.views.log import print_json, range_json
from tidemill.core.counts import many


def bridge(
    ctx: typer.Context,
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="The stream of Amazon Kinesis.")],
    topic: TopicName,
    most: Annotated[int | None, typer.Option(min=1, max=MOST, help="The most records to copy. Default: all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Copy a stream of Kinesis into a topic of the project's file log, each record once."""
    total = 0
    for landed in open_project(ctx).bridge(stream, topic).run(most=most):
        total += len(landed)
        if as_json:
            print_json(range_json(landed))
        else:
            typer.echo(str(landed))
    if not as_json:
        typer.echo(f"{many(total, 'record')} from {stream}")
