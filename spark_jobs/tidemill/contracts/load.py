"""Loads contracts from files of the Open Data Contract Standard."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from tidemill.contracts.compile import compile_contract
from tidemill.contracts.files import OBJECT, by_name, contract_files, name_of, twice
from tidemill.contracts.findings import UNUSABLE, Findings
from tidemill.core.contract.contract import Contract
from tidemill.core.errors import ContractError

_sound: dict[tuple[str, str, str | None], Contract] = {}
"""Contracts without faults, by file name, picked object and digest: pages load the same project for each request."""

_MOST_SOUND = 256
_MOST_BYTES = 1_000_000


def load_contract(path: Path | str, picked: str = "") -> Contract:
    """Load the contract in one file. Its name is the file's name without `.odcs.yaml`.

    Of several schema objects, `picked` names the one to load; its contract is called `FILE#OBJECT`.

    A contract with the custom property `format` describes the records of a topic, and its rules are row rules. A
    contract without it describes the rows of a published table, and its rules are table rules.

    Raises:
        ContractError: the file cannot be read, is not ODCS 3.0.0 to 3.2.0, or asks for something that Tidemill cannot
            do. The error gives file and line of every such place.
    """
    file = Path(path)
    digest = _digest(file)
    key = (file.name, picked, digest)
    contract = _sound.get(key)
    if contract is None:
        contract = _compiled(file, picked)
        if digest is not None:
            if len(_sound) >= _MOST_SOUND:
                _sound.clear()
            _sound[key] = contract
    return replace(contract, source=str(path))


def _compiled(path: Path, picked: str) -> Contract:
    findings = Findings(str(path))
    contract = compile_contract(path, findings, picked)
    findings.raise_errors()
    if contract is None:
        said = next((f for f in findings.sorted() if UNUSABLE in f.message), None)
        fix = "describe the columns of a topic or table in `schema`"
        raise ContractError(f"{path}: no contract in it" if said is None else str(said), fix=fix)
    return contract


def _digest(path: Path) -> str | None:
    """The SHA-256 of a file; None where its reader has to say what is wrong with it."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def load_contracts(folder: Path | str) -> Mapping[str, Contract]:
    """Load all contracts of a folder and of the folders below it, sorted by name.

    Raises:
        ContractError: the folder does not exist, or one of its contracts cannot be used.
    """
    found = {name_of(path): load_contract(path) for path in contract_files(Path(folder))}
    return {name: found[name] for name in sorted(found)}


class Contracts(Mapping[str, Contract]):
    """The contracts of a folder by name. Each is loaded on first use, so a broken one stops only its users."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Contract] = {}

    @cached_property
    def _files(self) -> Mapping[str, list[Path]]:
        return by_name(self._folder)

    def __getitem__(self, name: str) -> Contract:
        """Return the contract with this name; `FILE#OBJECT` is one of several schema objects of a file.

        Raises:
            KeyError: the contract does not exist.
            ContractError: the folder does not exist, two files have this name, or the contract cannot be used.
        """
        if name not in self._read:
            file, _, picked = (name, "", "") if name in self._files else name.partition(OBJECT)
            paths = self._files[file]
            if len(paths) > 1:
                raise twice(file, paths)
            self._read[name] = load_contract(paths[0], picked)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        """The names of all contract files, sorted, including contracts that cannot be used."""
        return iter(sorted(self._files))

    def __len__(self) -> int:
        """How many contract files there are."""
        return len(self._files)
