"""Loads contracts from files of the Open Data Contract Standard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tidemill.contracts.compile import SUFFIX, compile_contract
from tidemill.contracts.findings import Findings
from tidemill.core.contract.contract import Contract
from tidemill.core.errors import ContractError


def load_contract(path: Path | str) -> Contract:
    """Load the contract in one file. Its name is the file's name without `.odcs.yaml`.

    A contract with the custom property `format` describes the records of a topic, and its rules are row rules. A
    contract without it describes the rows of a published table, and its rules are table rules.

    Raises:
        ContractError: the file cannot be read, is not ODCS 3.0.0 to 3.2.0, or asks for something that Tidemill cannot
            do. The error gives file and line of every such place.
    """
    findings = Findings(str(path))
    contract = compile_contract(Path(path), findings)
    findings.raise_errors()
    if contract is None:
        raise ContractError(f"{path}: no contract could be read")
    return contract


def load_contracts(folder: Path | str) -> Mapping[str, Contract]:
    """Load all contracts of a folder, without its subfolders, sorted by name.

    Raises:
        ContractError: the folder does not exist, or one of its contracts cannot be used.
    """
    return {c.name: c for c in (load_contract(path) for path in contract_files(Path(folder)))}


class Contracts(Mapping[str, Contract]):
    """The contracts of a folder by name. Each is loaded on first use, so a broken one stops only its users."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Contract] = {}

    def __getitem__(self, name: str) -> Contract:
        """Return the contract with this name.

        Raises:
            KeyError: the contract does not exist.
            ContractError: the folder does not exist, or the contract cannot be used.
        """
        if name not in self._read:
            _check_folder(self._folder)
            path = self._folder / f"{name}{SUFFIX}"
            if not _is_file(path):
                self._check_spelling(name)
                raise KeyError(name)
            self._read[name] = load_contract(path)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        """The names of all contract files, sorted, including contracts that cannot be used."""
        names = (path.name for path in _listed(self._folder))
        return iter([name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)])

    def __len__(self) -> int:
        """How many contract files there are."""
        return sum(1 for _ in self)

    def _check_spelling(self, name: str) -> None:
        for path in _listed(self._folder):
            if _misnamed(path) and path.name.lower().removesuffix(".odcs.yml").removesuffix(SUFFIX) == name.lower():
                raise _misnaming(path)


def contract_files(folder: Path) -> list[Path]:
    """Return the contract files of a folder, sorted, including misnamed ones that cannot be loaded.

    Raises:
        ContractError: the folder does not exist.
    """
    return [path for path in _listed(folder) if path.name.endswith(SUFFIX) or _misnamed(path)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        raise ContractError(f"{path}: cannot be read: {error.strerror}", fix="change its rights") from None


def _listed(folder: Path) -> list[Path]:
    _check_folder(folder)
    try:
        return sorted(path for path in folder.iterdir() if _is_file(path))
    except OSError as error:
        raise ContractError(f"{folder}: cannot be read: {error.strerror}", fix="change its rights") from None


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        raise ContractError(
            f"{folder}: there is no such folder of contracts, found {found}", fix="create it, or give another"
        )


def _misnamed(path: Path) -> bool:
    return path.name.lower().endswith((".odcs.yml", SUFFIX)) and not path.name.endswith(SUFFIX)


def _misnaming(path: Path) -> ContractError:
    return ContractError(f"{path}: the name of a contract file is NAME{SUFFIX}", fix="rename the file")
