"""The contract that a command is told: a file, or the name of one of the project's contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.output import open_project
from tidemill.cli.reports.given import STANDARD_INPUT, given
from tidemill.core.errors import ContractError, InputError

if TYPE_CHECKING:
    from tidemill.contracts.changes.described import Described
    from tidemill.contracts.findings import Finding

ContractName = Annotated[
    str,
    typer.Argument(
        metavar="CONTRACT",
        help="A file, - for standard input, or a contract of the project by name; FILE#OBJECT picks an object.",
    ),
]


def described_contract(ctx: typer.Context, name: str) -> Described:
    """The contract that `name` stands for; `-` is the one on standard input.

    Raises:
        InputError: there is no such file, and no such contract in the project.
        ContractError: it cannot be used, or has several schema objects, and none is picked.
    """
    from tidemill.contracts.changes.described import described
    from tidemill.contracts.files import OBJECT

    whole, _, picked = name.partition(OBJECT)
    if whole != str(STANDARD_INPUT):
        path, picked = _file_of(ctx, name)
        return _picked(name, path, picked, *described(path))
    if str(STANDARD_INPUT) in (ctx.params.get("data"), ctx.params.get("sample")):
        raise InputError("standard input (-) can be read only once", fix="name a file")
    with given([STANDARD_INPUT]) as [path]:
        found, errors = described(path)
    named = {n: replace(each, contract=replace(each.contract, source=whole)) for n, each in found.items()}
    return _picked(name, STANDARD_INPUT, picked, named, [replace(error, file=whole) for error in errors])


def _picked(name: str, path: Path, picked: str, found: Mapping[str, Described], errors: Sequence[Finding]) -> Described:
    from tidemill.contracts.files import OBJECT

    if errors:
        shown = "\n".join(f"{e}\n  fix: {e.fix}" if e.fix else str(e) for e in errors[:20])
        raise ContractError(shown, fix="" if errors[0].fix else "correct the contract")
    if not picked and len(found) == 1:
        return next(iter(found.values()))
    for each in found.values():
        if picked and each.schema.text("name") == picked:
            return each
    if not found:
        said = f"{path} describes no topic or table with columns, so there is nothing to work with"
        raise InputError(said, fix="describe the columns of one in `schema`")
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
    if "/" in whole or whole.endswith((".yaml", ".yml", ".json")):
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
