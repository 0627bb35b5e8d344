"""From files of the Open Data Contract Standard to contracts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tidemill.contracts.compile import SUFFIX, compile_contract
from tidemill.contracts.findings import Findings
from tidemill.core.contract.contract import Contract
from tidemill.core.errors import ContractError


def load_contract(path: Path | str) -> Contract:
    """The contract in one file, called as the file is without `.odcs.yaml`.

    A contract with the custom property `format` is about the records of a topic, and its rules are row rules; one
    without is about the rows of a published table, and its rules are table rules.

    Raises:
        ContractError: the file cannot be read, is not ODCS 3.1.0 or 3.2.0, or asks for something that cannot
            be run. The text names file and line of every such place.
    """
    findings = Findings(str(path))
    contract = compile_contract(Path(path), findings)
    findings.raise_errors()
    if contract is None:
        raise ContractError(f"{path}: no contract could be read")
    return contract


def load_contracts(folder: Path | str) -> Mapping[str, Contract]:
    """All contracts of a folder, not of folders in it, by name and sorted.

    Raises:
        ContractError: there is no such folder, or one of its contracts cannot be used.
    """
    return {c.name: c for c in (load_contract(path) for path in contract_files(Path(folder)))}


class Contracts(Mapping[str, Contract]):
    """The contracts of a folder by name, each read when it is asked for: a wrong one stops only who uses it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Contract] = {}

    def __getitem__(self, name: str) -> Contract:
        """The contract of this name.

        Raises:
            KeyError: there is no such contract.
            ContractError: there is no such folder, or the contract cannot be used.
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
        """The names of all files of contracts, sorted, whether they can be used or not."""
        names = (path.name for path in _listed(self._folder))
        return iter([name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)])

    def __len__(self) -> int:
        """How many files of contracts there are."""
        return sum(1 for _ in self)

    def _check_spelling(self, name: str) -> None:
        for path in _listed(self._folder):
            if _misnamed(path) and path.name.lower().removesuffix(".odcs.yml").removesuffix(SUFFIX) == name.lower():
                raise _misnaming(path)


def contract_files(folder: Path) -> list[Path]:
    """The contract files of a folder, sorted; also those that are named almost like one, and cannot be loaded.

    Raises:
        ContractError: there is no such folder.
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
