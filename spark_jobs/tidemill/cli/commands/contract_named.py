"""The contract that a command is told: a file, or the name of one of the project's contracts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.output import open_project
from tidemill.core.errors import ContractError, InputError

if TYPE_CHECKING:
    from tidemill.contracts.changes.described import Described

ContractName = Annotated[
    str,
    typer.Argument(
        metavar="CONTRACT", help="A file, or the name of a contract of the project; FILE#OBJECT picks a schema object."
    ),
]


def described_contract(ctx: typer.Context, name: str) -> Described:
    """The contract that `name` stands for.

    Raises:
        InputError: there is no such file, and no such contract in the project.
        ContractError: it cannot be used, or has several schema objects, and none is picked.
    """
    from tidemill.contracts.changes.described import described
    from tidemill.contracts.files import OBJECT

    path, picked = _file_of(ctx, name)
    found, errors = described(path)
    if errors:
        shown = "\n".join(f"{e}\n  fix: {e.fix}" if e.fix else str(e) for e in errors[:20])
        raise ContractError(shown, fix="" if errors[0].fix else "correct the contract")
    if not picked and len(found) == 1:
        return next(iter(found.values()))
    for each in found.values():
        if picked and each.schema.text("name") == picked:
            return each
    known = [f"{name.removesuffix(OBJECT + picked)}{OBJECT}{each.schema.text('name')}" for each in found.values()]
    what = f"has no schema object called `{picked}`" if picked else f"has {len(found)} schema objects"
    raise InputError(f"{path} {what}; there are {', '.join(known)}", fix=f"write {known[0]}")


def _file_of(ctx: typer.Context, name: str) -> tuple[Path, str]:
    """The file, and the name of the schema object that is picked, if one is."""
    from tidemill.contracts.files import OBJECT, by_name, twice
    from tidemill.contracts.nodes import closest

    whole, _, picked = (name, "", "") if Path(name).is_file() else name.partition(OBJECT)
    if Path(whole).is_file():
        return Path(whole), picked
    if "/" in whole or whole.endswith((".yaml", ".yml")):
        raise InputError(f"{whole}: there is no such file", fix="give a contract file, or the name of a contract")
    folder = Path(open_project(ctx).settings.contracts)
    known = by_name(folder)
    if len(known.get(whole, [])) > 1:
        raise twice(whole, known[whole])
    if whole not in known:
        names = ", ".join(sorted(known)[:20]) or "none"
        near = closest(whole, known)
        raise InputError(f"{folder}: there is no contract `{whole}`; there are: {names}", fix=near or "give a file")
    return known[whole][0], picked
