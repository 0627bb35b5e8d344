"""Finds the contract files of a folder, and the names by which pipelines know them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tidemill.core.errors import ContractError

SUFFIX = ".odcs.yaml"
"""The suffix of the contract files that Tidemill writes."""

OBJECT = "#"
"""Stands between the name of a file with several schema objects and the name of one of them."""

_CONTRACT = re.compile(r"(?P<name>.+)\.odcs\.(?:ya?ml|json)", re.IGNORECASE)
_YAML = re.compile(r"(?P<name>.+)\.ya?ml", re.IGNORECASE)
_KIND = re.compile(rb"""^["']?kind["']?\s*:\s*["']?DataContract\b""", re.MULTILINE | re.IGNORECASE)
_SNIFFED = 65_536


def name_of(path: Path) -> str:
    """Return the contract name of a file: its name without `.odcs.yaml`, `.odcs.json`, `.yaml` or `.yml`."""
    found = _CONTRACT.fullmatch(path.name) or _YAML.fullmatch(path.name)
    return found["name"] if found else path.name


def contract_files(folder: Path) -> list[Path]:
    """Return the contract files of a folder and of all folders below it, sorted.

    These are all things called `*.odcs.yaml`, `*.odcs.yml` or `*.odcs.json`, and other YAML files that say
    `kind: DataContract`. Folders whose names begin with a dot are left out; links are followed.

    Raises:
        ContractError: the folder does not exist, or something in it cannot be read.
    """
    _check_folder(folder)
    return sorted(path for path in files_below(folder) if _is_contract(path))


def by_name(folder: Path) -> Mapping[str, list[Path]]:
    """Return the contract files of a folder by contract name. More than one file has a name only by mistake.

    Raises:
        ContractError: as `contract_files`.
    """
    found: dict[str, list[Path]] = {}
    for path in contract_files(folder):
        found.setdefault(name_of(path), []).append(path)
    return found


def twice(name: str, paths: list[Path]) -> ContractError:
    """The error for two files with the same contract name."""
    return ContractError(f"two files are the contract `{name}`: {paths[0]} and {paths[1]}", fix="rename one of them")


def files_below(folder: Path) -> Iterator[Path]:
    """All files of a folder and of all folders below it, without folders whose names begin with a dot.

    Raises:
        ContractError: something in it cannot be read.
    """

    def fail(error: OSError) -> None:
        raise ContractError(f"{error.filename}: cannot be read: {error.strerror}", fix="change its rights") from None

    # A folder may be reached in several ways, and a link may lead to a folder above it.
    seen = {folder.resolve()}
    for where, below, names in os.walk(folder, onerror=fail, followlinks=True):
        folders = [name for name in below if _CONTRACT.fullmatch(name)]
        yield from (Path(where) / name for name in (*names, *folders))
        places = {name: (Path(where) / name).resolve() for name in below if not name.startswith(".")}
        below[:] = [name for name in sorted(places) if places[name] not in seen]
        seen |= set(places.values())


def _is_contract(path: Path) -> bool:
    # Also a folder or a link to nothing: whoever reads it says what is wrong.
    if _CONTRACT.fullmatch(path.name):
        return True
    if not _YAML.fullmatch(path.name) or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return _KIND.search(file.read(_SNIFFED)) is not None
    except OSError as error:
        raise ContractError(f"{path}: cannot be read: {error.strerror}", fix="change its rights") from None


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        raise ContractError(
            f"{folder}: there is no such folder of contracts, found {found}", fix="create it, or give another"
        )
