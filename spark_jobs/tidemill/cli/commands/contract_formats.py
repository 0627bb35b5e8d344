"""`tidemill contract import` and `export`: contracts from and to the formats of other tools."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from tidemill.cli.commands.contract_named import ContractName, described_contract
from tidemill.cli.reports.given import given_file
from tidemill.contracts.formats.others import Other
from tidemill.core.errors import printable

OtherFormat = Annotated[Other, typer.Argument(metavar="FORMAT", help=f"One of {', '.join(Other)}.")]


def import_contract(
    other: OtherFormat,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The file, - for standard input; FILE#NAME picks one of several tables or models."
        ),
    ],
    name: Annotated[str, typer.Option("--name", help="The name of the contract. Default: as it is called there.")] = "",
    dialect: Annotated[str, typer.Option("--dialect", help="The SQL of sql and dbt, as sqlglot calls it.")] = "spark",
) -> None:
    """Print the contract that a file in another format describes.

    JSON Schema and Avro describe records in JSON; SQL and dbt describe tables. What a contract cannot say is named on
    standard error.
    """
    from tidemill.contracts.formats import registry
    from tidemill.contracts.formats.written import written

    whole, _, picked = (file, "", "") if Path(file).is_file() else file.partition("#")
    with given_file(whole) as path:
        draft = registry.imported(other, path, picked, dialect)
    text, losses = written(dataclasses.replace(draft, name=name) if name else draft)
    _warn(losses)
    typer.echo(text, nl=False)


def export_contract(ctx: typer.Context, other: OtherFormat, contract: ContractName) -> None:
    """Print a contract in another format. What that format cannot say is named on standard error."""
    from tidemill.contracts.formats import registry

    found = registry.exported(other, described_contract(ctx, contract))
    _warn(found.losses)
    typer.echo(found.text, nl=False)


def _warn(losses: Iterable[str]) -> None:
    for loss in losses:
        typer.echo(f"warning: {printable(loss)}", err=True)
